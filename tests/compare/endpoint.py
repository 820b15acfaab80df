"""A server whose streams have known numbers, to measure the measuring client with: OpenAI's chat and Anthropic's Messages."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class FakeServer:
    """Streams `tokens` tokens, `per_chunk` at a time: the first chunk at `content_at` seconds, the next ones `gap` apart.

    fail_every: each n-th request gets a 500. cut_after: the connection breaks after so many chunks. refuses: body fields that
    get a 400. fast_text: what fast says instead of " go" (a server that serves another model as fast). key: what requests must
    bring. model: what they must ask for. busy: so many requests get a 429 first, with these headers. stall: seconds in which
    nothing is answered, from the request of number stall_from on; stalled: how many waited for their end. seen: bodies so far.
    """

    content_at: float = 0.0
    gap: float = 0.0
    tokens: int = 8
    per_chunk: int = 1
    usage: bool = True
    logprobs: bool = False
    headway: bool = True
    fail_every: int = 0
    cut_after: int = 0
    refuses: tuple[str, ...] = ()
    fast_text: str = " go"
    key: str | None = None
    model: str | None = None
    busy: int = 0
    busy_headers: dict[str, str] = field(default_factory=dict)
    stall: float = 0.0
    stall_from: int = 1
    stalled: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _stalled_until: float | None = None
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._messages)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fake", "object": "model"}]})

    async def _metrics(self, _: web.Request) -> web.Response:
        if not self.headway:
            raise web.HTTPNotFound
        busy = asyncio.get_running_loop().time() / 2
        return web.Response(text=f'headway_engine_busy_seconds_total{{model="fake"}} {busy}\n')

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if refusal := await self._refusal(request, body):
            return refusal
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        await _event(response, [_choice({"role": "assistant", "content": ""})])
        text = self.fast_text if body.get("service_tier") == "priority" else " go"
        for number, first in enumerate(range(0, self.tokens, self.per_chunk)):
            await asyncio.sleep(begin + self.content_at + number * self.gap - loop.time())
            if self.cut_after and number == self.cut_after and request.transport is not None:
                request.transport.abort()
                return response
            count = min(self.per_chunk, self.tokens - first)
            await _event(response, [_choice({"content": text * count}, [text] * count if self.logprobs else [])])
        await _event(response, [_choice({}, finish="stop")])
        if self.usage:
            await _event(response, [], self._last(body))
        await response.write(b"data: [DONE]\n\n")
        return response

    def _last(self, body: dict[str, Any]) -> dict[str, Any]:
        fast = body.get("service_tier") == "priority"
        last: dict[str, Any] = {"usage": {"prompt_tokens": 7, "completion_tokens": self.tokens}}
        if self.headway:
            seconds = 0.006 * self.tokens if fast else 0.001 * self.tokens
            mode = "fast" if fast else "standard"
            last["headway"] = {"mode": mode, "pace": 40.0, "attainment": 0.75, "engine_seconds": seconds}
            last["service_tier"] = body.get("service_tier", "default")
        return last

    async def _refusal(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        self.seen.append(body)
        number = len(self.seen)
        await self._stand_still(number)
        given = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.key is not None and given != self.key:
            return _error(401, f"Incorrect API key provided: {given}")
        if self.model is not None and body["model"] != self.model:
            return _error(404, f"The model {body['model']!r} does not exist")
        if refused := next((name for name in self.refuses if name in body), None):
            return _error(400, f"Unrecognized request argument supplied: {refused}")
        if number <= self.busy:
            return _error(429, "slow down", self.busy_headers)
        if self.fail_every and number % self.fail_every == 0:
            return _error(500, "made to fail")
        return None

    async def _stand_still(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        if number >= self.stall_from and self._stalled_until is None:
            self._stalled_until = loop.time() + self.stall
        if self._stalled_until is not None and (wait := self._stalled_until - loop.time()) > 0:
            self.stalled += 1
            await asyncio.sleep(wait)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if refusal := await self._refusal(request, body):
            return refusal
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        speed = body.get("speed", "standard")
        fresh = {"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1, "output_tokens": 1}
        usage = fresh | {"speed": speed} if self.usage else None
        await _send(response, {"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}})
        await _send(response, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        await _send(response, {"type": "ping"})
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for number, first in enumerate(range(0, self.tokens, self.per_chunk)):
            await asyncio.sleep(begin + self.content_at + number * self.gap - loop.time())
            if self.cut_after and number == self.cut_after:
                await _send(response, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
                return response
            text = " go" * min(self.per_chunk, self.tokens - first)
            await _send(response, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        await _send(response, {"type": "content_block_stop", "index": 0})
        if body.get("tools"):
            use = {"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": {}}
            await _send(response, {"type": "content_block_start", "index": 1, "content_block": use})
            for piece in ("", '{"zone": ', '"UTC"}'):
                delta = {"type": "input_json_delta", "partial_json": piece}
                await _send(response, {"type": "content_block_delta", "index": 1, "delta": delta})
        last = {"output_tokens": self.tokens} if self.usage else None
        await _send(response, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last})
        await _send(response, {"type": "message_stop"})
        return response


@asynccontextmanager
async def serving(server: FakeServer) -> AsyncIterator[FakeServer]:
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextmanager
def threaded(server: FakeServer) -> Iterator[FakeServer]:
    """For commands, whose event loop is their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def event_bytes(choices: list[dict[str, Any]], more: dict[str, Any] | None = None) -> bytes:
    """One event of a chat stream."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "choices": choices, "usage": None} | (more or {})
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _choice(delta: dict[str, Any], tokens: list[str] | None = None, finish: str | None = None) -> dict[str, Any]:
    logprobs = {"content": [{"token": token, "logprob": 0.0} for token in tokens]} if tokens else None
    return {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}


def content(text: str) -> bytes:
    """One event with this text."""
    return event_bytes([_choice({"content": text})])


async def _event(response: web.StreamResponse, choices: list[dict[str, Any]], more: dict[str, Any] | None = None) -> None:
    await response.write(event_bytes(choices, more))


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    error = {"message": message, "type": "error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status, headers=headers)
