"""What can be asked of the server, and what it may answer: the table that the OpenAPI document is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from headway.server.anthropic import shapes as anthropic
from headway.server.anthropic.events import EVENTS as MESSAGE_EVENTS
from headway.server.anthropic.schemas import CountTokensRequest, MessagesRequest
from headway.server.modes import PACE_HEADER, SLOWEST_MS, TTFT_HEADER
from headway.server.openai import shapes as openai
from headway.server.openai.schemas import ChatRequest, CompletionRequest
from headway.server.responses import shapes as responses
from headway.server.responses.events import EVENTS as RESPONSE_EVENTS
from headway.server.responses.schemas import PromptBody, ResponsesRequest
from headway.server.responses.shapes import LARGEST_PAGE, PAGE
from headway.server.shapes import Health, Root

Dialect = Literal["OpenAI", "Anthropic", "models", "operations"]
Json = dict[str, Any]

ERRORS: Mapping[int, str] = {
    400: "The request can't be served as asked; the message names the field.",
    401: "A key is needed, and there was none or an unknown one.",
    403: "The key may not ask for this mode.",
    404: "No such model, or no such response of this key.",
    413: "The body is too large.",
    429: "No seat is free, or the key is over a limit; `retry-after` says when to come again.",
    500: "The engine failed on this request, or the server did.",
    503: "The server is shutting down, or its engine has ended.",
    529: "No seat is free at standard, or the server is shutting down.",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """asked: the body of the request; example: of it, without the model. answered: bodies of a 200, plain: its media types that
    aren't JSON. chunk, events: what a stream is made of, unnamed or by name. refusals: statuses beyond those that anything may
    be answered. unhealthy: the body of a 503 that isn't an error's. open: needs no key. leads_to: names of operations that
    take the id of what is answered, as `response_id`."""

    method: Literal["get", "post", "delete"]
    path: str
    name: str
    dialect: Dialect
    summary: str
    answer: str
    answered: tuple[type[BaseModel], ...] = ()
    asked: type[BaseModel] | None = None
    example: Json = field(default_factory=dict)
    chunk: type[BaseModel] | None = None
    events: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    plain: tuple[str, ...] = ()
    parameters: tuple[Json, ...] = ()
    refusals: tuple[int, ...] = ()
    unhealthy: type[BaseModel] | None = None
    open: bool = False
    description: str = ""
    leads_to: tuple[str, ...] = ()

    def statuses(self) -> list[int]:
        """Of failures."""
        busy = 529 if self.dialect == "Anthropic" else 503
        return sorted({*self.refusals, *([] if self.open else [401]), 500, busy})

    def failures(self) -> tuple[type[BaseModel], ...]:
        if self.dialect == "Anthropic":
            return (anthropic.MessageError,)
        return (openai.ErrorBody, anthropic.MessageError) if self.dialect == "models" else (openai.ErrorBody,)

    def models(self) -> Iterator[type[BaseModel]]:
        for model in (*self.answered, self.asked, self.chunk, *self.events.values(), *self.failures(), self.unhealthy):
            if model is not None:
                yield model


def _parameter(where: Literal["path", "query", "header"], name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": where, "required": where == "path", "description": description, "schema": schema}


def _milliseconds(name: str, what: str) -> Json:
    return _parameter("header", name, {"type": "number", "exclusiveMinimum": 0, "maximum": SLOWEST_MS}, what)


SPEED = (
    _milliseconds(PACE_HEADER, "Milliseconds per token after the first that are to be promised."),
    _milliseconds(TTFT_HEADER, "Milliseconds to the first token that are to be promised."),
)
VERSION = (
    _parameter("header", "anthropic-version", {"type": "string"}, "As Anthropic's clients send it; any will do."),
    _parameter("header", "anthropic-beta", {"type": "string"}, "Ignored."),
)
RESPONSE_ID = _parameter("path", "response_id", {"type": "string"}, "As the response that was made has it.")
MODEL_ID = _parameter("path", "model_id", {"type": "string"}, "As the list has it.")
PAGES = (
    _parameter("query", "limit", {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE}, "Of one page."),
    _parameter("query", "order", {"enum": ["asc", "desc"], "default": "desc"}, "desc has the latest first."),
    _parameter("query", "after", {"type": "string"}, "The id of the item that a page comes after."),
)
WHOLE = _parameter("query", "stream", {"enum": [False], "default": False}, "A response that is kept is complete.")
GENERATING = (400, 403, 404, 413, 429)
COUNTING = (400, 404, 413)
HELLO = [{"role": "user", "content": "Hello!"}]
SOCKET = (
    "GET with an upgrade to a WebSocket serves the same: each message is a body with `type: response.create`, each event comes "
    "as a message of its own, and what is refused is an event of type `error`."
)

OPERATIONS = (
    Operation(
        "post", "/v1/chat/completions", "createChatCompletion", "OpenAI", "An answer in a chat",
        "One object, or its chunks as events.", (openai.ChatCompletion,), ChatRequest, {"messages": HELLO},
        openai.ChatChunk, parameters=SPEED, refusals=GENERATING,
    ),
    Operation(
        "post", "/v1/completions", "createCompletion", "OpenAI", "How a text goes on",
        "One object, or its chunks as events.", (openai.Completion,), CompletionRequest, {"prompt": "Once upon"},
        openai.Completion, parameters=SPEED, refusals=GENERATING,
    ),
    Operation(
        "post", "/v1/responses", "createResponse", "OpenAI", "A response",
        "One object, or its events.", (responses.ResponseAnswer,), ResponsesRequest, {"input": "Hello!"},
        events=RESPONSE_EVENTS, parameters=SPEED, refusals=GENERATING, description=SOCKET,
        leads_to=("getResponse", "deleteResponse", "listInputItems"),
    ),
    Operation(
        "post", "/v1/responses/input_tokens", "countResponseTokens", "OpenAI", "The tokens of a prompt",
        "The count.", (responses.InputTokens,), PromptBody, {"input": "Hello!"}, refusals=COUNTING,
    ),
    Operation(
        "get", "/v1/responses/{response_id}", "getResponse", "OpenAI", "A response that was kept",
        "As it was answered.", (responses.ResponseAnswer,), parameters=(RESPONSE_ID, WHOLE), refusals=(400, 404),
    ),
    Operation(
        "delete", "/v1/responses/{response_id}", "deleteResponse", "OpenAI", "Forgets a response",
        "It is forgotten.", (responses.DeletedResponse,), parameters=(RESPONSE_ID,), refusals=(404,),
    ),
    Operation(
        "get", "/v1/responses/{response_id}/input_items", "listInputItems", "OpenAI", "What a response was made from",
        "A page of items.", (responses.ItemList,), parameters=(RESPONSE_ID, *PAGES), refusals=(400, 404),
    ),
    Operation(
        "post", "/v1/messages", "createMessage", "Anthropic", "An answer in a chat",
        "One object, or its events.", (anthropic.MessageAnswer,), MessagesRequest, {"max_tokens": 64, "messages": HELLO},
        events=MESSAGE_EVENTS, parameters=(*VERSION, *SPEED), refusals=GENERATING,
    ),
    Operation(
        "post", "/v1/messages/count_tokens", "countMessageTokens", "Anthropic", "The tokens of a prompt",
        "The count.", (anthropic.TokenCount,), CountTokensRequest, {"messages": HELLO},
        parameters=VERSION, refusals=COUNTING,
    ),
    Operation(
        "get", "/v1/models", "listModels", "models", "The names that can be asked for",
        "All of them.", (openai.ModelList, anthropic.MessageModelList), parameters=VERSION[:1],
    ),
    Operation(
        "get", "/v1/models/{model_id}", "getModel", "models", "One of them",
        "What it can do.", (openai.ModelCard, anthropic.MessageModel),
        parameters=(MODEL_ID, *VERSION[:1]), refusals=(404,),
    ),
    Operation(
        "get", "/health", "getHealth", "operations", "Whether requests are taken",
        "They are.", (Health,), unhealthy=Health, open=True,
    ),
    Operation(
        "get", "/metrics", "getMetrics", "operations", "Figures for Prometheus", "In its text format.", plain=("text/plain",),
    ),
    Operation("get", "/", "getServer", "operations", "What this is", "Its name, version and models.", (Root,)),
)  # fmt: skip
