"""Messages and token counts: body in, Answer out."""

from __future__ import annotations

import uuid

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headway.server.answer import Answer
from headway.server.anthropic import messages
from headway.server.anthropic.limits import AnthropicCulture
from headway.server.anthropic.render import MessageRenderer
from headway.server.anthropic.schemas import CountTokensRequest, MessagesRequest
from headway.server.endpoint import Desk
from headway.server.errors import REQUEST_ID
from headway.server.modes import PACE_HEADER, TTFT_HEADER, Speed, resolve_messages_speed


class AnthropicEndpoints:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def messages(self, request: Request) -> Response:
        """A fast request that finds no place is refused, never served at standard: clients of this API ask again without
        `speed`, and find their prompt in the prefix cache, which both modes share."""
        ask = await self._desk.read(MessagesRequest, request)
        named = self._desk.models.find(ask.model)
        served = named.served
        asked = resolve_messages_speed(
            named,
            speed=ask.speed,
            tpot_ms=request.headers.get(PACE_HEADER),
            ttft_ms=request.headers.get(TTFT_HEADER),
        )
        messages.check(ask)
        answer_id = f"msg_{uuid.uuid4().hex}"
        generate = await messages.request(served, ask, answer_id)
        generation = self._desk.generation(request, served, asked, [generate], downgrade=False)

        def speak(speed: Speed) -> MessageRenderer:
            return MessageRenderer(
                answer_id,
                request.scope[REQUEST_ID],
                ask.model,
                speed.mode,
                len(generate.prompt),
                fills_context=generate.max_tokens < ask.max_tokens,
                new_reader=lambda: messages.new_reader(served, ask),
            )

        return Answer(generation, speak, AnthropicCulture(served), stream=bool(ask.stream))

    async def count_tokens(self, request: Request) -> Response:
        ask = await self._desk.read(CountTokensRequest, request)
        served = self._desk.models.find(ask.model).served
        return JSONResponse({"input_tokens": await messages.count_tokens(served, ask)})
