"""Ending well: no new requests, the running ones finish, the rest is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Abortable(Protocol):
    def abort(self) -> None:
        """End the response now, with a terminal event that says that the server is shutting down."""


class Drain:
    """Knows the requests that are being answered, and which of them generate; lives in the event loop. num_sockets: WebSockets
    that are open, which hold nothing up."""

    def __init__(self) -> None:
        self.draining = False
        self.num_requests = 0
        self.num_sockets = 0
        self._aborting = False
        self._generations: set[Abortable] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around the answer to one request."""
        self.num_requests += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.num_requests -= 1
            if not self.num_requests:
                self._idle.set()

    @contextmanager
    def socket(self) -> Iterator[None]:
        """Around a WebSocket, from its acceptance to its end."""
        self.num_sockets += 1
        try:
            yield
        finally:
            self.num_sockets -= 1

    @contextmanager
    def generation(self, generation: Abortable) -> Iterator[None]:
        """Around what abort() can end. One that begins after abort() ends at once."""
        self._generations.add(generation)
        if self._aborting:
            generation.abort()
        try:
            yield
        finally:
            self._generations.discard(generation)

    def begin(self) -> None:
        """From now on every new request is answered 503."""
        self.draining = True

    async def wait(self, seconds: float) -> bool:
        """True once no request is being answered any more, False if that took longer than `seconds`."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def abort(self) -> int:
        """Ends all generations; returns how many."""
        self._aborting = True
        generations = list(self._generations)
        for generation in generations:
            generation.abort()
        return len(generations)
