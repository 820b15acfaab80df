"""The choices of one HTTP request, from submission to the last delta."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from enum import Enum
from typing import Any

from starlette.types import Receive

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import Delta, GenerateRequest
from headway.runtime.served import Generator
from headway.runtime.stream import Stream
from headway.server.account import Account
from headway.server.drain import Drain
from headway.server.metrics import Metrics
from headway.server.modes import Speed
from headway.server.record import Recorder


class Ended(Enum):
    FINISHED = "the work is done"
    LEFT = "the client closed the connection"
    ABORTED = "the server is shutting down"


class Generation:
    """make: builds the GenerateRequests for a speed (again, if the first one is refused and a downgrade is allowed).
    account: whose limits and whose rows in the ledger it is about.
    metrics: told of each HTTP request that found no seat; recorder: of which requests these were."""

    def __init__(
        self,
        generator: Generator,
        drain: Drain,
        speed: Speed,
        make: Callable[[Speed], list[GenerateRequest]],
        account: Account,
        *,
        downgrade: bool,
        metrics: Metrics,
        recorder: Recorder | None = None,
    ) -> None:
        self.speed = speed
        self.account = account
        self._generator = generator
        self._drain = drain
        self._make = make
        self._downgrade = downgrade
        self._metrics = metrics
        self._recorder = recorder
        self._streams: list[Stream] = []
        self._num_output = 0
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Submits all choices or none; then `speed` is the one served. Raises the generator's RequestError: 400, 429, 503; and
        OverLimit, a 429 too, where the caller's limits don't allow it."""
        asked = self.speed
        self.account.request(asked.mode)
        try:
            try:
                await self._place()
            except RequestError as exc:
                if exc.status != 429 or not self._may_downgrade():
                    raise
                self.speed = self.speed.downgraded()
                await self._place()
                self._metrics.on_downgraded()
                if self._recorder:
                    self._recorder.downgraded(stream.request_id for stream in self._streams)
        except RequestError as exc:
            if exc.status in (429, 503):
                self._metrics.on_refused(self.speed.mode)
                self.account.refused(self.speed.mode)
            if exc.status == 429 and self._recorder:
                self._recorder.refused(self._make(asked))
            raise
        self.account.served(self.speed.mode)

    def _may_downgrade(self) -> bool:
        return self._downgrade and self.speed.mode is ModeName.FAST and not self.speed.explicit

    async def _place(self) -> None:
        requests = self._make(self.speed)
        await self.account.take(self.speed.mode, requests)
        self.account.opened(self.speed.mode, requests)
        try:
            self._submit(requests)
        except BaseException:
            await self.account.withdrawn(requests)
            raise

    def _submit(self, requests: list[GenerateRequest]) -> None:
        try:
            for request in requests:
                self._streams.append(self._generator.submit(request))
        except BaseException:
            self.cancel()
            self._streams.clear()
            raise

    async def deltas(self) -> AsyncGenerator[tuple[int, Delta], None]:
        """(choice, delta) of all choices as they come, until each has had its last."""
        if len(self._streams) == 1:
            async for delta in self._streams[0]:
                self._num_output += delta.num_tokens
                yield 0, delta
            return
        merged: asyncio.Queue[tuple[int, Delta]] = asyncio.Queue()
        pumps = [asyncio.create_task(_pump(index, stream, merged)) for index, stream in enumerate(self._streams)]
        try:
            running = len(pumps)
            while running:
                index, delta = await merged.get()
                self._num_output += delta.num_tokens
                yield index, delta
                running -= delta.finish_reason is not None
        finally:
            for pump in pumps:
                pump.cancel()

    async def attend(self, receive: Receive, work: Coroutine[Any, Any, None]) -> Ended:
        """Does `work` until it is done, the client leaves or the server must end; then nothing of the request goes on running.
        An exception of `work` passes through."""
        task = asyncio.ensure_future(work)
        watch = asyncio.ensure_future(self._watch(receive))
        try:
            with self._drain.generation(self):
                await asyncio.wait((task, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return self._ended.result()
            task.result()
            return Ended.FINISHED
        finally:
            self.cancel()
            watch.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
            if not task.cancelled():
                task.exception()  # seen: of a client that has left it may well be that nothing can be sent to it
            await self.account.ended(self._num_output)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._end(Ended.LEFT)

    def abort(self) -> None:
        self._end(Ended.ABORTED)

    def _end(self, how: Ended) -> None:
        if not self._ended.done():
            self._ended.set_result(how)

    def cancel(self) -> None:
        for stream in self._streams:
            stream.cancel()


async def _pump(index: int, stream: Stream, merged: asyncio.Queue[tuple[int, Delta]]) -> None:
    async for delta in stream:
        merged.put_nowait((index, delta))
