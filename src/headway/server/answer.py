"""The HTTP answer to a generation: a stream of server-sent events, or one JSON body.

A stream ends with a chunk that carries a finish_reason (one per choice) and `data: [DONE]`. If something goes wrong after the
status line, it ends with `data: {"error": {...}}` and `data: [DONE]` instead. Nothing is sent before the first token exists,
so a failure up to then is a plain error response, and the first byte says when the first token came.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headway.errors import RequestError
from headway.runtime.api import Delta, TokenLogprob
from headway.server.dialect import DONE, Dialect, Output
from headway.server.errors import error_bytes, error_response
from headway.server.generation import Ended, Generation
from headway.server.tally import Tally

log = logging.getLogger("headway.server")
SHUTTING_DOWN = "The server is shutting down and ended this request; send it again."
EVENT_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # tells nginx to pass each event on at once
]


class Answer(Response):
    """Runs the generation when the server calls it, so that there is no moment at which a running one has no owner.

    speak: makes the dialect once the speed that is served is known."""

    def __init__(
        self, generation: Generation, speak: Callable[[Generation], Dialect], *, choices_per_prompt: int, stream: bool
    ) -> None:
        self.status_code = 200
        self.background = None
        self._generation = generation
        self._speak = speak
        self._choices_per_prompt = choices_per_prompt
        self._streams = stream
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._generation.start()
        dialect = self._speak(self._generation)
        tally = Tally(self._generation.speed.mode, self._choices_per_prompt)
        work = self._stream(dialect, tally, send) if self._streams else self._collect(dialect, tally, scope, receive, send)
        try:
            ended = await self._generation.attend(receive, work)
            failure = RequestError(503, SHUTTING_DOWN, retry_after=1.0) if ended is Ended.ABORTED else None
        except RequestError as exc:
            failure = exc
        except Exception:
            if not self._started:
                raise
            log.exception("a stream failed")
            failure = RequestError(500, "Internal error; the server's log has it.")
        if failure is None:
            return
        if not self._started:
            await error_response(failure)(scope, receive, send)
            return
        terminal = b"data: " + error_bytes(failure) + b"\n\n" + DONE
        await send({"type": "http.response.body", "body": terminal, "more_body": False})

    async def _stream(self, dialect: Dialect, tally: Tally, send: Send) -> None:
        held: dict[int, list[TokenLogprob]] = {}
        async for choice, delta in self._generation.deltas():
            _raise_failure(delta)
            chunk = b""
            if choice not in held:
                held[choice] = []
                chunk = dialect.begin(choice)
            if delta.logprobs:
                held[choice] += delta.logprobs
            finished = delta.finish_reason is not None
            if delta.text or (finished and held[choice]):
                chunk += dialect.piece(choice, delta.text, held[choice])
                held[choice] = []
            if finished:
                _add(tally, choice, delta)
                chunk += dialect.finish(choice, delta)
            if chunk:
                await self._send(send, chunk)
        await send({"type": "http.response.body", "body": dialect.usage(tally) + DONE, "more_body": False})

    async def _send(self, send: Send, chunk: bytes) -> None:
        if not self._started:
            await send({"type": "http.response.start", "status": 200, "headers": EVENT_HEADERS})
            self._started = True
        await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _collect(self, dialect: Dialect, tally: Tally, scope: Scope, receive: Receive, send: Send) -> None:
        outputs: dict[int, Output] = {}
        async for choice, delta in self._generation.deltas():
            _raise_failure(delta)
            output = outputs.setdefault(choice, Output())
            output.text.append(delta.text)
            output.logprobs += delta.logprobs
            if delta.finish_reason is not None:
                output.finish_reason = delta.finish_reason
                _add(tally, choice, delta)
        body = json.dumps(dialect.whole([outputs[choice] for choice in sorted(outputs)], tally)).encode()
        self._started = True
        await Response(body, media_type="application/json")(scope, receive, send)


def _add(tally: Tally, choice: int, delta: Delta) -> None:
    assert delta.usage is not None and delta.timing is not None, "a last delta carries usage and timing"
    tally.add(choice, delta.usage, delta.timing)


def _raise_failure(delta: Delta) -> None:
    if delta.finish_reason == "error":
        raise RequestError(500, delta.error or "The engine failed on this request.")
    if delta.finish_reason == "cancelled":
        raise RequestError(503, SHUTTING_DOWN, retry_after=1.0)
