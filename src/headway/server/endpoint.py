"""What every generating endpoint does between its dialect's body and its dialect's answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel
from starlette.requests import HTTPConnection, Request

from headway.errors import RequestError
from headway.ledger.book import Book
from headway.runtime.api import GenerateRequest
from headway.runtime.served import ServedModel
from headway.server.account import Account
from headway.server.body import parse, read_body
from headway.server.drain import Drain
from headway.server.errors import REQUEST_ID, new_request_id, speaks_anthropic
from headway.server.generation import Generation
from headway.server.metrics import Metrics
from headway.server.models import Models
from headway.server.modes import Speed
from headway.server.record import Recorder
from headway.server.visit import visit_of

if TYPE_CHECKING:
    from headway.access.quota import Quota

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Desk:
    """What all endpoints share. downgrade: whether dialects whose clients expect it serve a fast request that finds no seat
    at standard. recorder: of the main model's requests. quota: None if nothing is limited; book: None if there is no ledger.
    default_max_tokens: of chats and responses that set no limit; None = the room that the prompt leaves."""

    models: Models
    metrics: Metrics
    drain: Drain
    max_body_bytes: int
    downgrade: bool
    recorder: Recorder | None = None
    quota: Quota | None = None
    book: Book | None = None
    default_max_tokens: int | None = None

    async def read(self, model: type[Model], request: Request) -> Model:
        return parse(model, await read_body(request, self.max_body_bytes))

    def check_seats(self, served: ServedModel, speed: Speed, choices: int) -> None:
        """A 429 would be a lie for a request that could never be seated."""
        mode = served.modes[speed.mode]
        seats = mode.max_rows + mode.max_waiting
        if choices > seats:
            message = f"'n' and 'prompt' ask for {choices} choices at once; {mode.name} has {seats} seats."
            raise RequestError(400, message, param="n")

    def generation(
        self,
        connection: HTTPConnection,
        served: ServedModel,
        speed: Speed,
        requests: list[GenerateRequest],
        *,
        downgrade: bool,
        choices_per_prompt: int = 1,
    ) -> Generation:
        """Not yet started. requests: one per choice, at any speed; `speed` decides. Raises RequestError 403 if the key may not
        ask for it."""
        visit, scope = visit_of(connection), connection.scope
        visit.caller.check_mode(speed.mode)
        key = visit.caller.share
        account = Account(
            visit,
            # A WebSocket asks for many responses, each of which has a row of its own.
            entry_id=scope[REQUEST_ID] if scope["type"] == "http" else new_request_id(),
            dialect="anthropic" if speaks_anthropic(scope) else "openai",
            endpoint=scope["path"],
            model=served.id,
            choices_per_prompt=choices_per_prompt,
            quota=self.quota,
            book=self.book,
            metrics=self.metrics,
        )
        return Generation(
            served.generator,
            self.drain,
            speed,
            lambda speed: [_at(speed, request, key) for request in requests],
            account,
            downgrade=downgrade,
            metrics=self.metrics,
            recorder=self.recorder if served is self.models.main else None,
        )


def _at(speed: Speed, request: GenerateRequest, key: str) -> GenerateRequest:
    """The request at a speed. Its id differs by mode: one that was cancelled for a downgrade may still be in a running step."""
    return replace(request, id=f"{request.id}-{speed.mode}", mode=speed.mode, pace=speed.pace, ttft=speed.ttft, key=key)
