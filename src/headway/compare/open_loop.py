"""The load that comes by a timetable, whether or not anybody has been served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic

from headway.compare.load import R, Sender
from headway.compare.record import RequestRecord


class OpenLoop(Generic[R]):
    """Sends each request at its time. It never waits for an answer, and latencies count from the time in the table: a server
    that stands still for ten seconds makes all those wait who would have come meanwhile, and they are asked (leaving them out
    is known as coordinated omission).

    timetable: seconds from the start, rising, with what is sent then. records: one per request that was sent.
    """

    def __init__(self, sender: Sender[R], timetable: Iterator[tuple[float, R]], clock: Callable[[], float]) -> None:
        self.records: list[RequestRecord] = []
        self._sender = sender
        self._timetable = timetable
        self._clock = clock
        self._requests: set[asyncio.Task[object]] = set()
        self._driver: asyncio.Task[None] | None = None

    def start(self, begin: float | None = None) -> None:
        """begin: the clock's time at which the timetable begins; None: now."""
        self._driver = asyncio.create_task(self._drive(self._clock() if begin is None else begin))

    async def finish(self) -> None:
        """Wait until the timetable has run out and all requests are done."""
        if self._driver is not None:
            await self._driver
        while self._requests:
            await asyncio.wait(self._requests)

    async def stop(self, grace_seconds: float) -> None:
        """Send nothing more, wait so long for requests in flight, then cut them off."""
        if self._driver is not None:
            self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)
        if self._requests:
            _, late = await asyncio.wait(self._requests, timeout=grace_seconds)
            for request in late:
                request.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _drive(self, begin: float) -> None:
        for at, request in self._timetable:
            intended = begin + at
            if (wait := intended - self._clock()) > 0:
                await asyncio.sleep(wait)
            record = self._sender.record(request, intended)
            self.records.append(record)
            task = asyncio.create_task(self._sender.send(request, record))
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)
