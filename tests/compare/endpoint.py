"""A server whose streams have known numbers, to measure the measuring client with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class FakeServer:
    """Streams `tokens` tokens, `per_chunk` at a time: the first chunk at `content_at` seconds, the next ones `gap` apart.

    fail_every: each n-th request gets a 500. cut_after: the connection breaks after so many chunks. refuses: body fields that
    get a 400. fast_text: what fast says instead of " go" (a server that serves another model as fast). seen: bodies so far.
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
    seen: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/v1/chat/completions", self._chat)
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
        self.seen.append(body)
        if refused := next((name for name in self.refuses if name in body), None):
            return _error(400, f"Unrecognized request argument supplied: {refused}")
        if self.fail_every and len(self.seen) % self.fail_every == 0:
            return _error(500, "made to fail")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        await _event(response, [_choice({"role": "assistant", "content": ""})])
        text = self.fast_text if body["service_tier"] == "priority" else " go"
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
        fast = body["service_tier"] == "priority"
        last: dict[str, Any] = {"usage": {"prompt_tokens": 7, "completion_tokens": self.tokens}}
        if self.headway:
            seconds = 0.006 * self.tokens if fast else 0.001 * self.tokens
            mode = "fast" if fast else "standard"
            last["headway"] = {"mode": mode, "pace": 40.0, "attainment": 0.75, "engine_seconds": seconds}
            last["service_tier"] = body["service_tier"]
        return last


@asynccontextmanager
async def serving(server: FakeServer) -> AsyncIterator[FakeServer]:
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


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


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "error", "param": None, "code": None}}, status=status)
