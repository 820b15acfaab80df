"""The application: routes, and the layers around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headway import __version__
from headway.access.keys import Keyring
from headway.config import ServerSettings
from headway.errors import RequestError
from headway.ledger.book import Book
from headway.runtime.served import ServedModel
from headway.server.anthropic.cards import anthropic_card
from headway.server.anthropic.endpoints import AnthropicEndpoints
from headway.server.anthropic.schemas import CountTokensRequest, MessagesRequest
from headway.server.anthropic.shapes import ERRORS as MESSAGES_ERRORS
from headway.server.anthropic.shapes import MessageAnswer, TokenCount
from headway.server.drain import Drain
from headway.server.endpoint import Desk
from headway.server.errors import on_http_exception, on_request_error, speaks_anthropic
from headway.server.gate import Gate
from headway.server.metrics import Metrics
from headway.server.models import Models, Named
from headway.server.openai.cards import openai_card
from headway.server.openai.endpoints import OpenAIEndpoints
from headway.server.openai.schemas import ChatRequest, CompletionRequest
from headway.server.openai.shapes import ERRORS, ChatCompletion, Completion, ModelCard, ModelList
from headway.server.record import Recorder
from headway.server.responses import shapes
from headway.server.responses.endpoints import ResponsesEndpoints
from headway.server.responses.schemas import PromptBody, ResponsesRequest
from headway.server.responses.store import MemoryStore, ResponseStore
from headway.server.responses.turn import Turns
from headway.server.responses.websocket import ResponsesSocket
from headway.server.shapes import Health

if TYPE_CHECKING:
    from headway.access.quota import Quota


def create_app(
    models: Sequence[ServedModel],
    settings: ServerSettings,
    metrics: Metrics,
    *,
    keyring: Keyring | None = None,
    quota: Quota | None = None,
    book: Book | None = None,
    downgrade: bool = True,
    recorder: Recorder | None = None,
    responses: ResponseStore | None = None,
) -> FastAPI:
    """models: the main one first, then its spark if there is one. metrics, book, recorder: those that the engine loops report
    to. keyring: None lets everybody in. quota: None limits
    nobody. downgrade: a fast request that finds no seat, or is over its key's limit, is served at standard and says so; False
    turns that into a 429. responses: where responses are kept; None = in memory. Sets `app.state.drain` and
    `app.state.settings` for run_server."""
    known = Models(models)
    metrics.watch({served.id: served.generator.load for served in models})
    metrics.books = book
    # No documentation pages: they load scripts from elsewhere. /openapi.json describes everything.
    app = FastAPI(title="headway", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.drain = drain = Drain()
    app.state.settings = settings
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestError, on_request_error)
    app.add_middleware(Gate, drain=drain, keyring=keyring or Keyring({}, required=False))
    if settings.cors_origins:
        _allow_browsers(app, settings.cors_origins)
    max_body_bytes = int(settings.max_body_mb * 1e6)
    desk = Desk(known, metrics, drain, max_body_bytes, downgrade, recorder, quota, book)
    _add_generation(app, desk)
    if responses is None:
        responses = MemoryStore(int(settings.responses_mb * 1e6), settings.responses_hours * 3600)
    _add_responses(app, desk, responses, settings.cors_origins)
    _add_models(app, known)
    _add_operations(app, known, metrics, drain)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _allow_browsers(app: FastAPI, origins: tuple[str, ...]) -> None:
    exposed = ["x-request-id", "request-id", "retry-after", "retry-after-ms"]
    app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=exposed)


def _add_generation(app: FastAPI, desk: Desk) -> None:
    openai, anthropic = OpenAIEndpoints(desk), AnthropicEndpoints(desk)
    chunks, events = "One object, or its chunks as events.", "One object, or its events."
    post = partial(_add_post, app)
    post("/v1/chat/completions", openai.chat, ChatRequest, ChatCompletion, chunks, ERRORS)
    post("/v1/completions", openai.completions, CompletionRequest, Completion, chunks, ERRORS)
    post("/v1/messages", anthropic.messages, MessagesRequest, MessageAnswer, events, MESSAGES_ERRORS)
    counted = "The count."
    post("/v1/messages/count_tokens", anthropic.count_tokens, CountTokensRequest, TokenCount, counted, MESSAGES_ERRORS)


def _add_responses(app: FastAPI, desk: Desk, store: ResponseStore, origins: tuple[str, ...]) -> None:
    turns = Turns(desk, store)
    made = ResponsesEndpoints(desk, turns, store)
    path, one = "/v1/responses", "/v1/responses/{response_id}"
    _add_post(app, path, made.create, ResponsesRequest, shapes.ResponseAnswer, "One object, or its events.", ERRORS)
    _add_post(app, f"{path}/input_tokens", made.input_tokens, PromptBody, shapes.InputTokens, "The count.", ERRORS)
    unknown: dict[int | str, dict[str, Any]] = {404: {**ERRORS[404], "description": "No such response of this key."}}
    app.add_api_route(one, made.retrieve, methods=["GET"], responses={200: {"model": shapes.ResponseAnswer}, **unknown})
    app.add_api_route(one, made.delete, methods=["DELETE"], responses={200: {"model": shapes.DeletedResponse}, **unknown})
    items: dict[int | str, dict[str, Any]] = {200: {"model": shapes.ItemList}, **unknown}
    app.add_api_route(f"{one}/input_items", made.input_items, methods=["GET"], responses=items)
    app.add_api_websocket_route(path, ResponsesSocket(desk, turns, origins).serve)


def _add_post(
    app: FastAPI,
    path: str,
    endpoint: Callable[..., Any],
    asked: type[BaseModel],
    answered: type[BaseModel],
    description: str,
    errors: dict[int | str, dict[str, Any]],
) -> None:
    schema = {"$ref": f"#/components/schemas/{asked.__name__}"}
    app.add_api_route(
        path,
        endpoint,
        methods=["POST"],
        responses={200: {"model": answered, "description": description}, **errors},
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}},
    )


def _add_models(app: FastAPI, models: Models) -> None:
    """In OpenAI's shape, or in Anthropic's for its clients."""

    def card(request: Request, named: Named) -> dict[str, Any]:
        return anthropic_card(named) if speaks_anthropic(request.scope) else openai_card(named)

    async def listed(request: Request) -> Response:
        data = [card(request, named) for named in models.named]
        if speaks_anthropic(request.scope):
            return JSONResponse({"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]})
        return JSONResponse({"object": "list", "data": data})

    async def model(request: Request, model_id: str) -> Response:
        return JSONResponse(card(request, models.find(model_id)))

    _add_read(app, "/v1/models", listed, {200: {"model": ModelList}})
    _add_read(app, "/v1/models/{model_id:path}", model, {200: {"model": ModelCard}, 404: ERRORS[404]})


def _add_operations(app: FastAPI, models: Models, metrics: Metrics, drain: Drain) -> None:
    async def root() -> Response:
        return JSONResponse({"name": "headway", "version": __version__, "models": [named.name for named in models.named]})

    async def health() -> Response:
        if not all(served.generator.alive for served in models):
            return JSONResponse({"status": "failed"}, 503)
        return JSONResponse({"status": "draining"}, 503) if drain.draining else JSONResponse({"status": "ok"})

    async def scrape() -> Response:
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})

    _add_read(app, "/", root, None)
    unhealthy = {"model": Health, "description": "Draining, or an engine has ended."}
    _add_read(app, "/health", health, {200: {"model": Health}, 503: unhealthy})
    _add_read(app, "/metrics", scrape, {200: {"content": {"text/plain": {}}}})


def _add_read(app: FastAPI, path: str, endpoint: Callable[..., Any], responses: dict[int | str, dict[str, Any]] | None) -> None:
    """GET, and HEAD beside it. responses: None keeps the route out of the OpenAPI document."""
    app.add_api_route(path, endpoint, methods=["GET"], responses=responses, include_in_schema=responses is not None)
    app.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False)


def _describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; the request models come in by hand because the endpoints read raw bytes."""
    if not app.openapi_schema:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        bodies = (ChatRequest, CompletionRequest, MessagesRequest, CountTokensRequest, ResponsesRequest, PromptBody)
        asked = [(body, "validation") for body in bodies]
        _, schemas = models_json_schema(asked, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
        document["components"]["schemas"].update(schemas["$defs"])
        app.openapi_schema = document
    return app.openapi_schema
