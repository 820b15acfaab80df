"""The HTTP answer to a generation: a stream of server-sent events, or one JSON body.

Nothing is sent before the first token exists (a long wait excepted, where the dialect has an event for it), so a failure up to
then is a plain error response, and the first byte says when the first token came. After that it is the dialect's last event.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headway.access.allowance import Kind, OverLimit, Window
from headway.errors import RequestError
from headway.runtime.api import Delta
from headway.server.errors import error_response
from headway.server.generation import Ended, Generation
from headway.server.modes import Speed
from headway.server.render import Json, Renderer
from headway.server.sse import DONE, frame

log = logging.getLogger("headway.server")
SHUTTING_DOWN = "The server is shutting down and ended this request; send it again."
SILENCE_SECONDS = 15.0
"""After so long without an event a stream shows that it is alive."""
EVENT_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # tells nginx to pass each event on at once
}


Keep = Callable[[Json], Awaitable[None]]
"""Takes the whole answer before its end is sent: what it keeps is there for a client that has seen the end."""


async def play(generation: Generation, renderer: Renderer, keep: Keep | None = None) -> AsyncGenerator[list[Json], None]:
    """The events of a started generation, delta by delta. Raises RequestError where the engine fails or is stopped."""
    async for choice, delta in generation.deltas():
        _raise_failure(delta)
        yield renderer.feed(choice, delta)
    if keep is not None:
        await keep(renderer.whole())
    yield renderer.end()


async def attend(generation: Generation, receive: Receive, work: Coroutine[Any, Any, None]) -> RequestError | None:
    """Does `work` on a started generation, as `Generation.attend` does; what it failed of, None if it is done or the client
    has left."""
    try:
        ended = await generation.attend(receive, work)
    except RequestError as exc:
        return exc
    return RequestError(503, SHUTTING_DOWN, retry_after=1.0) if ended is Ended.ABORTED else None


class Culture(Protocol):
    """How a dialect refuses, and what it says of its limits."""

    def refusal(self, error: RequestError, asked: Speed) -> RequestError:
        """What becomes of a refusal of the generator at this speed."""

    def headers(self, speed: Speed, own: Mapping[Kind, Window], refused: RequestError | None = None) -> dict[str, str]:
        """Limit headers of an answer at `speed`, or of its refusal. own: the caller's limits."""


class Answer(Response):
    """Runs the generation when the server calls it, so that there is no moment at which a running one has no owner.

    speak: makes the renderer once the speed that is served is known."""

    def __init__(
        self,
        generation: Generation,
        speak: Callable[[Speed], Renderer],
        culture: Culture,
        *,
        stream: bool,
        keep: Keep | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._generation = generation
        self._speak = speak
        self._culture = culture
        self._streams = stream
        self._keep = keep
        self._started = False
        self._sent_at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = self._generation.speed
        try:
            await self._generation.start()
        except RequestError as exc:
            if exc.status != 429:
                raise
            headers = self._refusal_headers(exc)
            await error_response(self._culture.refusal(exc, asked), scope, headers)(scope, receive, send)
            return
        renderer = self._speak(self._generation.speed)
        work = self._stream(renderer, send) if self._streams else self._collect(renderer, scope, receive, send)
        try:
            failure = await attend(self._generation, receive, work)
        except Exception:
            if not self._started:
                raise
            log.exception("a stream failed")
            failure = RequestError(500, "Internal error; the server's log has it.")
        if failure is None:
            return
        if not self._started:
            raise failure
        await self._end(renderer, renderer.failure(failure), send)

    def _refusal_headers(self, refused: RequestError) -> dict[str, str]:
        """Of the mode that was tried last. SDKs obey x-should-retry, and don't come back to what can't succeed."""
        if not isinstance(refused, OverLimit):
            return self._culture.headers(self._generation.speed, {}, refused)
        headers = self._culture.headers(self._generation.speed, refused.windows, refused)
        return headers | {"x-should-retry": "false"} if refused.hopeless else headers

    def _limit_headers(self) -> dict[str, str]:
        return self._culture.headers(self._generation.speed, self._generation.account.windows)

    async def _stream(self, renderer: Renderer, send: Send) -> None:
        pulse = asyncio.create_task(self._keep_alive(renderer, send))
        try:
            async with contextlib.aclosing(play(self._generation, renderer, self._keep)) as played:
                async for events in played:
                    await self._send(events, send)
        finally:
            pulse.cancel()
        await self._end(renderer, [], send)

    async def _keep_alive(self, renderer: Renderer, send: Send) -> None:
        while True:
            await asyncio.sleep(self._sent_at + SILENCE_SECONDS - time.monotonic())
            if time.monotonic() >= self._sent_at + SILENCE_SECONDS:
                self._sent_at = time.monotonic()
                await self._send(renderer.silence(), send)

    async def _send(self, events: list[Json], send: Send) -> None:
        if not events:
            return
        self._sent_at = time.monotonic()
        if not self._started:
            headers = EVENT_HEADERS | self._limit_headers()
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
            self._started = True
            await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": frame(events), "more_body": True})

    async def _end(self, renderer: Renderer, events: list[Json], send: Send) -> None:
        body = frame(events) + (DONE if renderer.ends_with_done else b"")
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _collect(self, renderer: Renderer, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(play(self._generation, renderer, self._keep)) as played:
            async for _ in played:
                pass
        body = json.dumps(renderer.whole()).encode()
        self._started = True
        await Response(body, headers=self._limit_headers(), media_type="application/json")(scope, receive, send)


def _raise_failure(delta: Delta) -> None:
    if delta.finish_reason == "error":
        raise RequestError(500, delta.error or "The engine failed on this request.")
    if delta.finish_reason == "cancelled":
        raise RequestError(503, SHUTTING_DOWN, retry_after=1.0)
