"""A thread that puts rows into the database, a batch at most every second, and never holds anything up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from headway.errors import HeadwayError
from headway.ledger.database import load_library, open_database
from headway.ledger.entry import Row

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger("headway.ledger")
FLUSH_SECONDS = 1.0
RETRY_SECONDS = 5.0
CLOSE_SECONDS = 10.0
MOST_WAITING = 10_000


class Writer:
    """url: of the database, opened in the thread, so that neither a start nor a request waits for it. most_waiting: rows kept
    while it can't be written; beyond that the oldest are lost. One warning says so, `lost` and `waiting` count."""

    def __init__(self, url: str, most_waiting: int = MOST_WAITING, retry_seconds: float = RETRY_SECONDS) -> None:
        self.lost = 0
        self._url = url
        self._most_waiting = most_waiting
        self._retry_seconds = retry_seconds
        self._engine: Engine | None = None
        self._rows: list[Row] = []
        self._failing = False
        self._todo: SimpleQueue[Callable[[], Row | None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="headway-ledger", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._rows)

    def put(self, make: Callable[[], Row | None]) -> None:
        """make: called in the thread, in turn; the row that it returns, if any, is written. Takes microseconds."""
        self._todo.put(make)

    def close(self) -> None:
        """Write what there is to write."""
        self._todo.put(None)
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        load_library()
        self._flush()  # opens the database
        write_at = 0.0
        while True:
            wait = max(0.0, write_at - time.monotonic()) if self._rows else None
            if wait == 0.0:
                self._flush()
                write_at = time.monotonic() + self._retry_seconds
                continue
            try:
                make = self._todo.get(timeout=wait)
            except Empty:
                continue
            if make is None:
                break
            if (row := self._made(make)) is not None:
                if not self._rows:
                    write_at = time.monotonic() + FLUSH_SECONDS
                self._rows.append(row)
                self._drop_above(self._most_waiting)
        self._flush()
        self._drop_above(0)
        if self._engine is not None:
            self._engine.dispose()

    def _made(self, make: Callable[[], Row | None]) -> Row | None:
        try:
            return make()
        except Exception:  # nothing may end this thread
            log.exception("a row of the ledger is lost")
            self.lost += 1
            return None

    def _flush(self) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            self._write()
        except (SQLAlchemyError, HeadwayError, OSError) as error:
            if not self._failing:
                self._failing = True
                log.warning(
                    "the ledger can't be written: %s; serving goes on, and up to %d rows wait for it",
                    _reason(error),
                    self._most_waiting,
                )
        except Exception:  # a row that no database takes must not stand before all others
            log.exception("%d rows of the ledger are lost", len(self._rows))
            self._drop_above(0)
        else:
            if self._failing:
                self._failing = False
                log.warning("the ledger is being written again; %d rows were lost", self.lost)

    def _write(self) -> None:
        from headway.ledger.tables import requests

        if self._engine is None:
            self._engine = open_database(self._url)
        if self._rows:
            with self._engine.begin() as connection:
                connection.execute(requests.insert(), self._rows)
            self._rows = []

    def _drop_above(self, most: int) -> None:
        if (surplus := len(self._rows) - most) > 0:
            self.lost += surplus
            del self._rows[:surplus]


def _reason(error: Exception) -> str:
    """The database's own words, on one line."""
    text = str(getattr(error, "orig", None) or error)
    return " ".join(text.split())
