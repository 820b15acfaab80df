"""The two generating endpoints: body in, Answer out."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from headway import __version__
from headway.errors import RequestError
from headway.runtime.api import GenerateRequest
from headway.runtime.served import ServedModel
from headway.server import chat, completions
from headway.server.answer import Answer
from headway.server.body import parse, read_body
from headway.server.dialect import Dialect, Envelope
from headway.server.drain import Drain
from headway.server.generation import Generation
from headway.server.metrics import Metrics
from headway.server.modes import PACE_HEADER, TTFT_HEADER, Speed, resolve_speed
from headway.server.record import Recorder
from headway.server.schemas import ChatRequest, CompletionRequest, GenerationBody


class Endpoints:
    def __init__(
        self,
        served: ServedModel,
        metrics: Metrics,
        drain: Drain,
        *,
        max_body_bytes: int,
        downgrade: bool,
        recorder: Recorder | None = None,
    ) -> None:
        self._served = served
        self._max_body_bytes = max_body_bytes
        self._downgrade = downgrade
        self._metrics = metrics
        self._recorder = recorder
        self._drain = drain
        facts = f"{__version__} {served.id} {served.info.description}"
        self._fingerprint = f"hw_{hashlib.blake2b(facts.encode(), digest_size=5).hexdigest()}"

    async def chat(self, request: Request) -> Response:
        ask = parse(ChatRequest, await read_body(request, self._max_body_bytes))
        speed = self._speed(ask, request)
        chat.check(ask)
        self._check_seats(speed, ask.n or 1)
        answer_id = f"chatcmpl-{uuid.uuid4().hex}"
        requests = await chat.requests(self._served, ask, answer_id)

        def speak(served: Speed) -> Dialect:
            return chat.ChatDialect(self._envelope(answer_id, ask, served), ask, self._served.tokenizer.token_bytes, served)

        return self._answer(ask, speed, requests, speak, _key(request))

    async def completions(self, request: Request) -> Response:
        ask = parse(CompletionRequest, await read_body(request, self._max_body_bytes))
        speed = self._speed(ask, request)
        completions.check(ask)
        self._check_seats(speed, completions.num_prompts(ask) * (ask.n or 1))
        answer_id = f"cmpl-{uuid.uuid4().hex}"
        prompts = await completions.prompts(self._served, ask)
        requests = await completions.requests(self._served, ask, prompts, answer_id)
        echoes = [prompt.text if ask.echo else "" for prompt in prompts for _ in range(ask.n or 1)]

        def speak(served: Speed) -> Dialect:
            envelope = self._envelope(answer_id, ask, served)
            return completions.CompletionDialect(envelope, ask, self._served.tokenizer.token_bytes, served, echoes)

        return self._answer(ask, speed, requests, speak, _key(request))

    def _speed(self, ask: GenerationBody, request: Request) -> Speed:
        return resolve_speed(
            self._served.id,
            self._served.modes,
            model=ask.model,
            tier=ask.service_tier,
            tpot_ms=request.headers.get(PACE_HEADER),
            ttft_ms=request.headers.get(TTFT_HEADER),
        )

    def _envelope(self, answer_id: str, ask: GenerationBody, speed: Speed) -> Envelope:
        return Envelope(answer_id, int(time.time()), ask.model, speed.tier, self._fingerprint)

    def _answer(
        self,
        ask: GenerationBody,
        speed: Speed,
        requests: list[GenerateRequest],
        speak: Callable[[Speed], Dialect],
        key: str,
    ) -> Answer:
        generation = Generation(
            self._served.generator,
            self._drain,
            speed,
            lambda speed: [_at(speed, request, key) for request in requests],
            downgrade=self._downgrade,
            metrics=self._metrics,
            recorder=self._recorder,
        )
        return Answer(generation, lambda running: speak(running.speed), choices_per_prompt=ask.n or 1, stream=bool(ask.stream))

    def _check_seats(self, speed: Speed, choices: int) -> None:
        """A 429 would be a lie for a request that could never be seated."""
        mode = self._served.modes[speed.mode]
        seats = mode.max_rows + mode.max_waiting
        if choices > seats:
            message = f"'n' and 'prompt' ask for {choices} choices at once; {mode.name} has {seats} seats."
            raise RequestError(400, message, param="n")


def _key(request: Request) -> str:
    """Whose request it is, for fairness: what stands for the key, else the address it came from."""
    secret = request.headers.get("authorization") or request.headers.get("x-api-key")
    if secret is not None:
        return hashlib.blake2b(secret.encode(), digest_size=8).hexdigest()
    return request.client.host if request.client is not None else ""


def _at(speed: Speed, request: GenerateRequest, key: str) -> GenerateRequest:
    """The request at a speed. Its id differs by mode: one that was cancelled for a downgrade may still be in a running step."""
    return replace(request, id=f"{request.id}-{speed.mode}", mode=speed.mode, pace=speed.pace, ttft=speed.ttft, key=key)
