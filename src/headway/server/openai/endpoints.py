"""Chat and completions: body in, Answer out."""

from __future__ import annotations

import hashlib
import time
import uuid

from starlette.requests import Request
from starlette.responses import Response

from headway import __version__
from headway.server.answer import Answer
from headway.server.endpoint import Desk
from headway.server.modes import Speed
from headway.server.openai import chat, completions
from headway.server.openai.chunks import Envelope
from headway.server.openai.limits import OpenAICulture
from headway.server.openai.params import speed_of
from headway.server.openai.schemas import ChatRequest, CompletionRequest, GenerationBody


class OpenAIEndpoints:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._served = desk.served
        self._culture = OpenAICulture(desk.served)
        facts = f"{__version__} {desk.served.id} {desk.served.info.description}"
        self._fingerprint = f"hw_{hashlib.blake2b(facts.encode(), digest_size=5).hexdigest()}"

    async def chat(self, request: Request) -> Response:
        ask = await self._desk.read(ChatRequest, request)
        speed = speed_of(self._served, ask, request)
        chat.check(ask)
        self._desk.check_seats(speed, ask.n or 1)
        answer_id = f"chatcmpl-{uuid.uuid4().hex}"
        requests = await chat.requests(self._served, ask, answer_id, self._desk.default_max_tokens)
        generation = self._desk.generation(
            request, speed, requests, downgrade=self._desk.downgrade, choices_per_prompt=ask.n or 1
        )

        def speak(speed: Speed) -> chat.ChatRenderer:
            return chat.ChatRenderer(self._envelope(answer_id, ask, speed), ask, self._served, speed)

        return Answer(generation, speak, self._culture, stream=bool(ask.stream))

    async def completions(self, request: Request) -> Response:
        ask = await self._desk.read(CompletionRequest, request)
        speed = speed_of(self._served, ask, request)
        completions.check(ask)
        self._desk.check_seats(speed, completions.num_prompts(ask) * (ask.n or 1))
        answer_id = f"cmpl-{uuid.uuid4().hex}"
        prompts = await completions.prompts(self._served, ask)
        requests = await completions.requests(self._served, ask, prompts, answer_id)
        echoes = [prompt if ask.echo else completions.NO_ECHO for prompt in prompts for _ in range(ask.n or 1)]
        generation = self._desk.generation(
            request, speed, requests, downgrade=self._desk.downgrade, choices_per_prompt=ask.n or 1
        )

        def speak(speed: Speed) -> completions.CompletionRenderer:
            envelope = self._envelope(answer_id, ask, speed)
            return completions.CompletionRenderer(envelope, ask, self._served.tokenizer.token_bytes, speed, echoes)

        return Answer(generation, speak, self._culture, stream=bool(ask.stream))

    def _envelope(self, answer_id: str, ask: GenerationBody, speed: Speed) -> Envelope:
        return Envelope(answer_id, int(time.time()), ask.model, speed.tier, self._fingerprint)
