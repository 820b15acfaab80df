"""The load: requests kept going against a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from headway.compare.record import RequestRecord

FIRST_BACKOFF_SECONDS = 0.1
LAST_BACKOFF_SECONDS = 2.0


R = TypeVar("R")
_Sent = TypeVar("_Sent", contravariant=True)


class Sender(Protocol[_Sent]):
    """Whoever can send such requests: a Client, a target."""

    def record(self, request: _Sent, intended: float | None = None) -> RequestRecord:
        """Of a request that is to be sent now, or was to be sent at `intended`."""

    async def send(self, request: _Sent, record: RequestRecord) -> object:
        """Send it and fill the record. Never raises for what the server or the network does."""


class ClosedLoop(Generic[R]):
    """A number of streams, each of which sends its next request when its last one is done.

    arrivals: what to send, in order, shared by the streams; they end when it ends. (OpenLoop takes the same arrivals and
    decides by a timetable, instead of by who is done, when each is sent.)
    records: one per request that was sent, those in flight included.
    """

    def __init__(self, client: Sender[R], arrivals: Iterator[R]) -> None:
        self.records: list[RequestRecord] = []
        self._client = client
        self._arrivals = arrivals
        self._stopping = asyncio.Event()
        self._streams: list[asyncio.Task[None]] = []

    def start(self, streams: int, ramp_seconds: float = 0.0) -> None:
        """Start streams, spread evenly over the ramp so that they don't all prefill in the same steps. May be called again
        after `stop`."""
        self._stopping.clear()
        self._streams = [asyncio.create_task(self._run(ramp_seconds * i / streams)) for i in range(streams)]

    async def finish(self) -> None:
        """Wait until the arrivals have run out and all requests are done."""
        await asyncio.gather(*self._streams)

    async def stop(self, grace_seconds: float) -> None:
        """Send nothing more, wait so long for requests in flight, then cut them off."""
        self._stopping.set()
        if self._streams:
            _, late = await asyncio.wait(self._streams, timeout=grace_seconds)
            for stream in late:
                stream.cancel()
            await asyncio.gather(*self._streams, return_exceptions=True)
        self._streams = []

    async def _run(self, delay: float) -> None:
        if await self._stopped_within(delay):
            return
        backoff = FIRST_BACKOFF_SECONDS
        for request in self._arrivals:
            record = self._client.record(request)
            self.records.append(record)
            await self._client.send(request, record)
            if record.succeeded:
                backoff = FIRST_BACKOFF_SECONDS
                if self._stopping.is_set():
                    return
            elif await self._stopped_within(backoff):  # a server that fails at once must not be hammered
                return
            else:
                backoff = min(2 * backoff, LAST_BACKOFF_SECONDS)

    async def _stopped_within(self, seconds: float) -> bool:
        if seconds > 0 and not self._stopping.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            except TimeoutError:
                return False
        return self._stopping.is_set()
