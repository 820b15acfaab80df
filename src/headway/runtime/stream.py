"""The way out of the engine loop: deltas of one request, handed from the engine thread to the server's event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from headway.runtime.api import Delta


class Stream:
    """Deltas of one request, in order; iterate it in the event loop that it was made in.

    The engine thread collects the deltas of a whole step and pushes them with one wake-up of the event loop.
    """

    def __init__(self, request_id: str, cancel: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._cancel = cancel
        self._deltas: deque[Delta] = deque()
        self._ready = asyncio.Event()
        self._done = False

    def push(self, delta: Delta) -> None:
        """Called in the event loop."""
        self._deltas.append(delta)
        self._ready.set()

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        if self._done:
            raise StopAsyncIteration
        while not self._deltas:
            self._ready.clear()
            await self._ready.wait()
        delta = self._deltas.popleft()
        self._done = delta.finish_reason is not None
        return delta

    def cancel(self) -> None:
        """Free the request's row and blocks at once. Harmless after the end, and when called twice."""
        if not self._done:
            self._cancel(self.request_id)


def push_all(batch: Sequence[tuple[Stream, Delta]]) -> None:
    """In the event loop of all these streams."""
    for stream, delta in batch:
        stream.push(delta)
