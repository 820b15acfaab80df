"""One response from its request, the same for HTTP and for a WebSocket."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from headway.errors import RequestError
from headway.runtime.served import ServedModel
from headway.server.answer import Keep
from headway.server.body import show
from headway.server.endpoint import Desk
from headway.server.generation import Generation
from headway.server.modes import Speed
from headway.server.openai.limits import OpenAICulture
from headway.server.openai.params import speed_of
from headway.server.prompt import Begun
from headway.server.render import Json
from headway.server.responses.items import Item, read_items
from headway.server.responses.render import ResponseRenderer
from headway.server.responses.request import check, count_tokens, new_reader, prompt, request, wants_logprobs
from headway.server.responses.schemas import PromptBody, ResponsesRequest
from headway.server.responses.store import Recent, ResponseStore, StoredResponse
from headway.server.visit import visit_of


@dataclass(frozen=True, slots=True)
class Turn:
    """generation: not yet started. culture: of its model. speak: makes the renderer once the speed is known. keep: for
    `play`. foresee: once all is sent, prepares what a next turn on the connection will begin with."""

    generation: Generation
    culture: OpenAICulture
    speak: Callable[[Speed], ResponseRenderer]
    keep: Keep
    foresee: Callable[[], Awaitable[None]]


class Turns:
    def __init__(self, desk: Desk, store: ResponseStore) -> None:
        self._desk = desk
        self._store = store

    async def prepare(self, ask: ResponsesRequest, connection: HTTPConnection, recent: Recent | None = None) -> Turn:
        """recent: of a connection that goes on from its own responses. Raises RequestError 400 for what can't be answered."""
        named = self._desk.models.find(ask.model)
        served, speed = named.served, speed_of(named, ask, connection)
        check(ask)
        response_id = f"resp_{uuid.uuid4().hex}"
        key = visit_of(connection).caller.share
        items, known = await self._conversation(served, ask, key, recent)
        generate, begun = await request(served, ask, items, response_id, known, self._desk.default_max_tokens)
        created = int(time.time())
        answered: StoredResponse | None = None

        def speak(speed: Speed) -> ResponseRenderer:
            return ResponseRenderer(
                {"id": response_id, "object": "response", "created_at": created, **_repeated(ask, speed)},
                speed.mode,
                lambda: new_reader(served, ask),
                served.tokenizer.token_bytes if wants_logprobs(ask) else None,
                silent=ask.generate is False,
            )

        async def keep(response: Json) -> None:
            nonlocal answered
            answered = stored = StoredResponse(response, items)
            if recent is not None:
                recent.put(stored, (begun,) if begun is not None else ())
            if ask.store is not False:
                await self._store.put(key, stored)

        async def foresee() -> None:
            if recent is None or answered is None or begun is None:
                return
            with contextlib.suppress(RequestError):  # a next turn will be told, if there is one
                _, ahead = await prompt(served, ask, answered.items, (begun,))
                recent.put(answered, (ahead, begun))

        generation = self._desk.generation(connection, served, speed, [generate], downgrade=self._desk.downgrade)
        return Turn(generation, OpenAICulture(served), speak, keep, foresee)

    async def count(self, ask: PromptBody, connection: HTTPConnection) -> int:
        """Tokens of the prompt."""
        served = self._desk.models.find(ask.model).served
        items, _ = await self._conversation(served, ask, visit_of(connection).caller.share, None)
        return await count_tokens(served, ask, items)

    async def _conversation(
        self, served: ServedModel, ask: PromptBody, key: str, recent: Recent | None
    ) -> tuple[tuple[Item, ...], tuple[Begun, ...]]:
        """Its items, and what is known of the prompt that they make for this model."""
        given = read_items(ask.input)
        previous_id = ask.previous_response_id
        if previous_id is None:
            return tuple(given), ()
        if recent is not None and (last := recent.get(previous_id)) is not None:
            previous, known = last
            same = self._desk.models.find(previous.response["model"]).served is served
            return (*previous.items, *given), known if same else ()
        stored = await self._store.get(key, previous_id)
        if stored is None:
            message = f"Previous response with id {show(previous_id)} not found; send the whole conversation as 'input'."
            raise RequestError(400, message, code="previous_response_not_found", param="previous_response_id")
        return (*stored.items, *given), ()


def _repeated(ask: ResponsesRequest, speed: Speed) -> Json:
    """What a response says of its request."""
    return {
        "background": False,
        "instructions": ask.instructions,
        "max_output_tokens": ask.max_output_tokens,
        "max_tool_calls": None,
        "metadata": ask.metadata or {},
        "model": ask.model,
        "parallel_tool_calls": ask.parallel_tool_calls is not False,
        "previous_response_id": ask.previous_response_id,
        "prompt_cache_key": ask.prompt_cache_key,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": ask.safety_identifier,
        "service_tier": speed.tier,
        "temperature": 1.0 if ask.temperature is None else ask.temperature,
        "text": {"format": _format(ask)},
        "tool_choice": ask.tool_choice or "auto",
        "tools": [tool.model_dump() for tool in ask.tools or ()],
        "top_logprobs": ask.top_logprobs or 0,
        "top_p": 1.0 if ask.top_p is None else ask.top_p,
        "truncation": ask.truncation or "disabled",
        "user": ask.user,
    }


def _format(ask: ResponsesRequest) -> Json:
    """As it was asked for, with the name that OpenAI's types want."""
    form = ask.text.format if ask.text is not None else None
    if form is None:
        return {"type": "text"}
    named = {"name": form.name or "output"} if form.type == "json_schema" else {}
    return form.model_dump(by_alias=True, exclude_none=True) | named
