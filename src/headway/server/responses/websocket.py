"""Responses over a WebSocket: an agent's many turns on one connection, each of which sends only what is new.

A message asks for a response, whose events come back one a message. Messages are answered one after the other; those that
carry a `stream_id` form a line of their own beside the others, and their events carry it too. An error that comes before a
response begins is an event of type `error`, with the status and the body that HTTP would have. What was answered on a
connection can be gone on from there even if it isn't stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Any

from pydantic_core import from_json, to_json
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from headway.access.allowance import OverLimit
from headway.errors import RequestError
from headway.server.answer import SHUTTING_DOWN, attend, play
from headway.server.body import parse, show
from headway.server.drain import Drain
from headway.server.endpoint import Desk
from headway.server.errors import error_response, retry_headers
from headway.server.modes import Speed
from headway.server.openai.errors import error_body
from headway.server.openai.limits import OpenAICulture
from headway.server.render import Json
from headway.server.responses.schemas import ResponseCreate
from headway.server.responses.store import Recent
from headway.server.responses.turn import Turn, Turns

log = logging.getLogger("headway.server")
MAX_SECONDS = 3600.0
"""How long a connection may last, as in OpenAI's API: clients open a new one and go on."""
MOST_WAITING = 64
"""Messages of one connection that are being answered or wait for it."""
CLIENTS_TIME = 1e-3
"""Seconds before a next turn is prepared for: on a machine with few cores the client reads the last one first."""
GOING_AWAY, ABNORMAL = 1001, 1006


class ResponsesSocket:
    """origins: web pages that may connect. A browser asks no server before it opens a WebSocket, so the others are refused."""

    def __init__(self, desk: Desk, turns: Turns, origins: tuple[str, ...]) -> None:
        self._desk = desk
        self._turns = turns
        self._origins = origins

    async def serve(self, websocket: WebSocket) -> None:
        origin = websocket.headers.get("origin")
        if origin is not None and not {origin, "*"} & set(self._origins):
            message = f"Pages of {show(origin)} may not connect; 'cors_origins' in the server's settings lists those that may."
            refusal = error_response(RequestError(403, message), websocket.scope)
            await refusal(websocket.scope, websocket.receive, websocket.send)
            return
        await websocket.accept()
        drain = self._desk.drain
        with drain.socket():
            await _Connection(websocket, self._turns, drain).run()


class _Connection:
    def __init__(self, websocket: WebSocket, turns: Turns, drain: Drain) -> None:
        self._websocket = websocket
        self._turns = turns
        self._drain = drain
        self._recent = Recent()
        self._lanes: dict[str | None, deque[ResponseCreate]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._expired = False

    async def run(self) -> None:
        """Until the client leaves; then nothing it asked for goes on running."""
        self._spawn(self._expire())
        try:
            while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
                await self._take(message)
        except WebSocketDisconnect:
            pass
        finally:
            tasks = set(self._tasks)
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _take(self, message: Message) -> None:
        data: bytes = message["bytes"] if message.get("bytes") is not None else message["text"].encode()
        try:
            if self._expired:
                raise _limit_reached()
            if sum(len(waiting) + 1 for waiting in self._lanes.values()) >= MOST_WAITING:
                raise RequestError(429, f"{MOST_WAITING} messages of this connection are being answered; wait for one to end.")
            ask = _read(data)
        except RequestError as exc:
            await self._send_error(exc, _lane_of(data))
            return
        if (waiting := self._lanes.get(ask.stream_id)) is not None:
            waiting.append(ask)
            return
        self._lanes[ask.stream_id] = deque([ask])
        self._spawn(self._work(ask.stream_id))

    async def _work(self, lane: str | None) -> None:
        waiting = self._lanes[lane]
        try:
            while waiting:
                await self._respond(waiting.popleft())
        finally:
            del self._lanes[lane]

    async def _respond(self, ask: ResponseCreate) -> None:
        try:
            if self._drain.draining:
                raise RequestError(503, SHUTTING_DOWN, retry_after=1.0)
            with self._drain.request():
                await self._generate(ask)
        except RequestError as exc:
            await self._send_error(exc, ask.stream_id)
        except WebSocketDisconnect:
            pass  # `run` will see it too
        except Exception:
            log.exception("a response over a WebSocket failed")
            await self._send_error(RequestError(500, "Internal error; the server's log has it."), ask.stream_id)

    async def _generate(self, ask: ResponseCreate) -> None:
        turn = await self._turns.prepare(ask, self._websocket, self._recent)
        generation, asked = turn.generation, turn.generation.speed
        try:
            await generation.start()
        except RequestError as exc:
            if exc.status != 429:
                raise
            await self._send_error(exc, ask.stream_id, _limit_headers(turn.culture, asked, exc))
            return
        renderer = turn.speak(generation.speed)

        async def work() -> None:
            async with contextlib.aclosing(play(generation, renderer, turn.keep)) as played:
                async for events in played:
                    await self._send(events, ask.stream_id)

        failure = await attend(generation, _never, work())
        if failure is None:
            self._spawn(self._foresee(turn, ask.stream_id))
            return
        if not renderer.begun:
            raise failure
        await self._send(renderer.failure(failure), ask.stream_id)

    async def _foresee(self, turn: Turn, lane: str | None) -> None:
        """Unless the lane's next turn comes at once."""
        await asyncio.sleep(CLIENTS_TIME)
        if lane not in self._lanes:
            await turn.foresee()

    async def _send(self, events: list[Json], lane: str | None) -> None:
        for event in events:
            if self._websocket.application_state is not WebSocketState.CONNECTED:  # it broke as another lane sent
                raise WebSocketDisconnect(ABNORMAL)
            shown = event if lane is None else {**event, "stream_id": lane}
            await self._websocket.send_text(to_json(shown).decode())

    async def _send_error(self, error: RequestError, lane: str | None, headers: dict[str, str] | None = None) -> None:
        headers = {**(headers or {}), **retry_headers(error)}
        body = {**error_body(error)["error"], **({"headers": headers} if headers else {})}
        with contextlib.suppress(WebSocketDisconnect):
            await self._send([{"type": "error", "status": error.status, "error": body}], lane)

    async def _expire(self) -> None:
        """Responses that run may end; then the client is told to connect anew."""
        await asyncio.sleep(MAX_SECONDS)
        self._expired = True
        others = self._tasks - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        await self._send_error(_limit_reached(), None)
        with contextlib.suppress(WebSocketDisconnect):
            await self._websocket.close(GOING_AWAY, "connection limit reached")

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _read(data: bytes) -> ResponseCreate:
    ask = parse(ResponseCreate, data)
    if ask.stream is False:
        raise RequestError(400, "'stream' must be left out: a WebSocket always streams.", param="stream")
    return ask


def _limit_headers(culture: OpenAICulture, asked: Speed, refused: RequestError) -> dict[str, str]:
    own = refused.windows if isinstance(refused, OverLimit) else {}
    return culture.headers(asked, own, refused)


def _lane_of(data: bytes) -> str | None:
    """Of a message that may be anything."""
    try:
        lane = from_json(data).get("stream_id")
    except (ValueError, AttributeError):
        return None
    return lane if isinstance(lane, str) else None


def _limit_reached() -> RequestError:
    message = f"Responses websocket connection limit reached ({MAX_SECONDS / 60:g} minutes). Open a new connection to go on."
    return RequestError(400, message, code="websocket_connection_limit_reached")


async def _never() -> Message:
    """A client that leaves shows in `run`, which then cancels everything."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")
