"""Chat and completions: body in, Answer out."""

from __future__ import annotations

import hashlib
import time
import uuid

from starlette.requests import Request
from starlette.responses import Response

from headway import __version__
from headway.runtime.served import ServedModel
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
        self._fingerprints = {served.id: _fingerprint(served) for served in desk.models}

    async def chat(self, request: Request) -> Response:
        ask = await self._desk.read(ChatRequest, request)
        named = self._desk.models.find(ask.model)
        served, speed = named.served, speed_of(named, ask, request)
        chat.check(ask)
        self._desk.check_seats(served, speed, ask.n or 1)
        answer_id = f"chatcmpl-{uuid.uuid4().hex}"
        requests = await chat.requests(served, ask, answer_id, self._desk.default_max_tokens)
        generation = self._desk.generation(
            request, served, speed, requests, downgrade=self._desk.downgrade, choices_per_prompt=ask.n or 1
        )

        def speak(speed: Speed) -> chat.ChatRenderer:
            return chat.ChatRenderer(self._envelope(answer_id, ask, served, speed), ask, served, speed)

        return Answer(generation, speak, OpenAICulture(served), stream=bool(ask.stream))

    async def completions(self, request: Request) -> Response:
        ask = await self._desk.read(CompletionRequest, request)
        named = self._desk.models.find(ask.model)
        served, speed = named.served, speed_of(named, ask, request)
        completions.check(ask)
        self._desk.check_seats(served, speed, completions.num_prompts(ask) * (ask.n or 1))
        answer_id = f"cmpl-{uuid.uuid4().hex}"
        prompts = await completions.prompts(served, ask)
        requests = await completions.requests(served, ask, prompts, answer_id)
        echoes = [prompt if ask.echo else completions.NO_ECHO for prompt in prompts for _ in range(ask.n or 1)]
        generation = self._desk.generation(
            request, served, speed, requests, downgrade=self._desk.downgrade, choices_per_prompt=ask.n or 1
        )

        def speak(speed: Speed) -> completions.CompletionRenderer:
            envelope = self._envelope(answer_id, ask, served, speed)
            return completions.CompletionRenderer(envelope, ask, served.tokenizer.token_bytes, speed, echoes)

        return Answer(generation, speak, OpenAICulture(served), stream=bool(ask.stream))

    def _envelope(self, answer_id: str, ask: GenerationBody, served: ServedModel, speed: Speed) -> Envelope:
        return Envelope(answer_id, int(time.time()), ask.model, speed.tier, self._fingerprints[served.id])


def _fingerprint(served: ServedModel) -> str:
    facts = f"{__version__} {served.id} {served.info.description}"
    return f"hw_{hashlib.blake2b(facts.encode(), digest_size=5).hexdigest()}"
