"""Databases: where the ledger's is, opening one, and keeping its tables as this version has them.

Importing this module is cheap; SQLAlchemy comes in when a database is opened.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from headway.errors import HeadwayError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

WAIT_SECONDS = 5.0
"""For a lock that another process holds, and for a connection."""
_ONE_AT_A_TIME = threading.RLock()
"""SQLAlchemy's modules import each other: of two threads that come first, one would find some of them half made."""


def default_url() -> str:
    """An SQLite file in HEADWAY_HOME, else in the platform's folder for data: books are no cache."""
    override = os.environ.get("HEADWAY_HOME")
    folder = Path(override).expanduser() if override else Path(platformdirs.user_data_dir("headway", appauthor=False))
    return f"sqlite:///{folder.absolute() / 'ledger.db'}"


def check_url(url: str) -> None:
    """Raises UsageError where a package is missing, without opening anything."""
    if url.startswith("postgresql") and importlib.util.find_spec("psycopg") is None:
        raise UsageError("ledger.url is a PostgreSQL database, which needs a package: pip install 'headway[postgres]'")


def load_library() -> None:
    """For a thread that is about to use SQLAlchemy."""
    with _ONE_AT_A_TIME:
        import sqlalchemy.exc  # noqa: F401


def open_database(url: str) -> Engine:
    """An engine whose database has the tables of `tables.py`. SQLite's folder is made if need be. Raises HeadwayError, and
    SQLAlchemyError if the database can't be reached."""
    with _ONE_AT_A_TIME:
        return _open_database(url)


def _open_database(url: str) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UsageError(f"{url.partition('://')[0]}://... is not the URL of a database") from None
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            _make_folder(Path(parsed.database).parent)
        engine = create_engine(parsed, connect_args={"timeout": WAIT_SECONDS})
        event.listen(engine, "connect", _set_up_sqlite)
    else:
        driver = parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed
        engine = create_engine(driver, pool_pre_ping=True, connect_args={"connect_timeout": int(WAIT_SECONDS)})
    try:
        bring_up_to_date(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def bring_up_to_date(engine: Engine) -> None:
    """Missing tables are made, and columns that were added since are added to old ones, empty. Raises HeadwayError if a newer
    headway has changed the tables in a way that this one doesn't know."""
    from sqlalchemy import inspect, text
    from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

    from headway.ledger.tables import VERSION, metadata, schema

    with engine.begin() as connection:
        for table in metadata.sorted_tables:  # another process may be doing the same
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
        version = connection.scalar(schema.select())
        if version is None:
            connection.execute(schema.insert().values(version=VERSION))
        elif version > VERSION:
            raise HeadwayError(f"the ledger's tables are of version {version}, of a newer headway; this one knows {VERSION}")
        seen = inspect(connection)
        for table in metadata.sorted_tables:
            there = {column["name"] for column in seen.get_columns(table.name)}
            for column in table.columns:
                if column.name not in there:
                    definition = CreateColumn(column).compile(dialect=engine.dialect)
                    connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))


def _set_up_sqlite(connection: object, _: object) -> None:
    """A write-ahead log: readers don't hold up the writer, and what was committed outlives a killed process."""
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadwayError(f"the ledger's folder {folder} can't be made: {error.strerror or error}") from None
