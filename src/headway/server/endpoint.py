"""What every generating endpoint does between its dialect's body and its dialect's answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import HTTPConnection, Request

from headway.errors import RequestError
from headway.runtime.api import GenerateRequest
from headway.runtime.served import ServedModel
from headway.server.body import parse, read_body
from headway.server.drain import Drain
from headway.server.generation import Generation
from headway.server.metrics import Metrics
from headway.server.modes import Speed
from headway.server.record import Recorder

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Desk:
    """What all endpoints share. downgrade: whether dialects whose clients expect it serve a fast request that finds no seat
    at standard."""

    served: ServedModel
    metrics: Metrics
    drain: Drain
    max_body_bytes: int
    downgrade: bool
    recorder: Recorder | None = None

    async def read(self, model: type[Model], request: Request) -> Model:
        return parse(model, await read_body(request, self.max_body_bytes))

    def check_seats(self, speed: Speed, choices: int) -> None:
        """A 429 would be a lie for a request that could never be seated."""
        mode = self.served.modes[speed.mode]
        seats = mode.max_rows + mode.max_waiting
        if choices > seats:
            message = f"'n' and 'prompt' ask for {choices} choices at once; {mode.name} has {seats} seats."
            raise RequestError(400, message, param="n")

    def generation(
        self, connection: HTTPConnection, speed: Speed, requests: list[GenerateRequest], *, downgrade: bool
    ) -> Generation:
        """Not yet started. requests: one per choice, at any speed; `speed` decides."""
        key = key_of(connection)
        return Generation(
            self.served.generator,
            self.drain,
            speed,
            lambda speed: [_at(speed, request, key) for request in requests],
            downgrade=downgrade,
            metrics=self.metrics,
            recorder=self.recorder,
        )


def key_of(connection: HTTPConnection) -> str:
    """Whose request it is, for fairness: what stands for the key, else the address it came from."""
    headers = connection.headers
    secret = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if secret:
        return hashlib.blake2b(secret.encode(), digest_size=8).hexdigest()
    return connection.client.host if connection.client is not None else ""


def _at(speed: Speed, request: GenerateRequest, key: str) -> GenerateRequest:
    """The request at a speed. Its id differs by mode: one that was cancelled for a downgrade may still be in a running step."""
    return replace(request, id=f"{request.id}-{speed.mode}", mode=speed.mode, pace=speed.pace, ttft=speed.ttft, key=key)
