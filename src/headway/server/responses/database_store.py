"""Responses that outlive the server: kept in the ledger's database, by a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pydantic_core import from_json, to_json

from headway.config import LedgerSettings, ServerSettings
from headway.errors import HeadwayError, RequestError
from headway.ledger.database import check_url, default_url, load_library, open_database
from headway.server.responses.store import MemoryStore, StoredResponse

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

log = logging.getLogger("headway.server")
RETRY_SECONDS = 5.0
"""How long a database is left alone after it has failed."""
TIDY_EVERY = 256
"""Writes after which all sizes are summed anew: other servers may write to the same database."""
Result = TypeVar("Result")


class DatabaseStore:
    """A ResponseStore. What is put is in memory until it is written, so that no answer waits for a disk; it stays there, within
    the same limits, if the database fails, which is warned of once. Limits as MemoryStore has them, over all servers that share
    the database. url: as open_database takes it; clock: Unix seconds. Raises UsageError if the URL's package is missing."""

    def __init__(self, url: str, max_bytes: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        check_url(url)
        self._url = url
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._clock = clock
        self._memory = MemoryStore(max_bytes, seconds, clock)
        self._worker = ThreadPoolExecutor(1, "headway-responses", initializer=load_library)
        # The rest belongs to the worker's thread.
        self._engine: Engine | None = None
        self._total = 0
        self._writes = 0
        self._failing = False
        self._again_at = 0.0

    async def put(self, key: str, stored: StoredResponse) -> None:
        await self._memory.put(key, stored)
        events = asyncio.get_running_loop()

        def write() -> None:
            try:
                if self._try(lambda connection: self._write(connection, key, stored)) is None:
                    return
            except Exception:
                log.exception("response %s is kept in memory alone", stored.id)
                return
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                events.call_soon_threadsafe(self._memory.forget, key, stored)

        self._worker.submit(write)

    async def get(self, key: str, response_id: str) -> StoredResponse | None:
        if (waiting := await self._memory.get(key, response_id)) is not None:
            return waiting
        found = await self._ask(lambda connection: self._read(connection, key, response_id))
        return found[0] if found is not None else None

    async def delete(self, key: str, response_id: str) -> bool:
        """Raises RequestError 503 if the database can't be asked."""
        waited = await self._memory.delete(key, response_id)
        deleted = await self._ask(lambda connection: self._delete(connection, key, response_id))
        if deleted is None:
            raise RequestError(503, "The database of responses can't be reached; try again.", retry_after=RETRY_SECONDS)
        return waited or deleted

    def close(self) -> None:
        """Write what there is to write."""
        self._worker.shutdown()
        if self._engine is not None:
            self._engine.dispose()

    # --- in the worker's thread ---------------------------------------------------------------------------------------------

    async def _ask(self, work: Callable[[Connection], Result]) -> Result | None:
        return await asyncio.get_running_loop().run_in_executor(self._worker, lambda: self._try(work))

    def _try(self, work: Callable[[Connection], Result]) -> Result | None:
        """None if the database fails, or has just failed."""
        from sqlalchemy.exc import SQLAlchemyError

        if time.monotonic() < self._again_at:
            return None
        try:
            if self._engine is None:
                self._engine = self._open()
            with self._engine.begin() as connection:
                result = work(connection)
        except (SQLAlchemyError, HeadwayError, OSError) as error:
            self._again_at = time.monotonic() + RETRY_SECONDS
            if not self._failing:
                self._failing = True
                reason = " ".join(str(getattr(error, "orig", None) or error).split())
                log.warning("responses are kept in memory alone for now; their database fails: %s", reason)
            return None
        self._failing = False
        return result

    def _open(self) -> Engine:
        from sqlalchemy.schema import CreateIndex, CreateTable

        from headway.server.responses.tables import responses

        engine = open_database(self._url)
        with engine.begin() as connection:  # another server may be doing the same
            connection.execute(CreateTable(responses, if_not_exists=True))
            for index in responses.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
            self._tidy(connection)
        return engine

    def _write(self, connection: Connection, key: str, stored: StoredResponse) -> bool:
        from headway.server.responses.tables import responses

        response, given = to_json(stored.response).decode(), to_json(stored.input).decode()
        size, until = len(response.encode()) + len(given.encode()), self._clock() + self._seconds
        self._delete(connection, key, stored.id)
        row = {"owner": key, "id": stored.id, "until": until, "size": size, "response": response, "input": given}
        connection.execute(responses.insert(), row)
        self._total += size
        self._writes += 1
        if self._total > self._max_bytes or self._writes % TIDY_EVERY == 0:
            self._tidy(connection)
        return True

    def _read(self, connection: Connection, key: str, response_id: str) -> tuple[StoredResponse | None]:
        from sqlalchemy import select

        from headway.server.responses.tables import responses as r

        mine = (r.c.owner == key) & (r.c.id == response_id) & (r.c.until > self._clock())
        row = connection.execute(select(r.c.response, r.c.input).where(mine)).first()
        return (None if row is None else StoredResponse(from_json(row.response), tuple(from_json(row.input))),)

    def _delete(self, connection: Connection, key: str, response_id: str) -> bool:
        from headway.server.responses.tables import responses as r

        mine = (r.c.owner == key) & (r.c.id == response_id)
        return connection.execute(r.delete().where(mine & (r.c.until > self._clock()))).rowcount > 0

    def _tidy(self, connection: Connection) -> None:
        """Without what is too old, and what is too much: the oldest of whoever has most."""
        from sqlalchemy import func, select

        from headway.server.responses.tables import responses as r

        connection.execute(r.delete().where(r.c.until <= self._clock()))
        sums = connection.execute(select(r.c.owner, func.sum(r.c.size)).group_by(r.c.owner))
        sizes: dict[str, int] = {owner: int(size) for owner, size in sums}
        while sum(sizes.values()) > self._max_bytes:
            most = max(sizes, key=lambda owner: sizes[owner])
            oldest = connection.execute(select(r.c.n, r.c.size).where(r.c.owner == most).order_by(r.c.n).limit(1)).first()
            if oldest is None:  # another server has been quicker
                del sizes[most]
                continue
            connection.execute(r.delete().where(r.c.n == oldest.n))
            sizes[most] -= oldest.size
        self._total = sum(sizes.values())


def open_store(server: ServerSettings, ledger: LedgerSettings) -> DatabaseStore | None:
    """None without a ledger, or if nothing is to be kept. Raises UsageError."""
    max_bytes = int(server.responses_mb * 1e6)
    if not ledger.enabled or not max_bytes:
        return None
    return DatabaseStore(ledger.url or default_url(), max_bytes, server.responses_hours * 3600)
