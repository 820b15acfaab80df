"""The application: routes, and the layers around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
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
from headway.server.drain import Drain
from headway.server.endpoint import Desk
from headway.server.errors import on_http_exception, on_request_error, speaks_anthropic
from headway.server.gate import Gate
from headway.server.metrics import Metrics
from headway.server.models import Models, Named
from headway.server.openai.cards import openai_card
from headway.server.openai.endpoints import OpenAIEndpoints
from headway.server.openapi import document
from headway.server.record import Recorder
from headway.server.responses.endpoints import ResponsesEndpoints
from headway.server.responses.store import MemoryStore, ResponseStore
from headway.server.responses.turn import Turns
from headway.server.responses.websocket import ResponsesSocket

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
    metrics.holds = quota
    # /openapi.json describes everything; there are no pages of it, for they load scripts from elsewhere.
    app = FastAPI(title="headway", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.drain = metrics.doors = drain = Drain()
    app.state.settings = settings
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestError, on_request_error)
    keyring = keyring or Keyring({}, required=False)
    app.add_middleware(Gate, drain=drain, keyring=keyring)
    if settings.cors_origins:
        _allow_browsers(app, settings.cors_origins)
    max_body_bytes = int(settings.max_body_mb * 1e6)
    desk = Desk(known, metrics, drain, max_body_bytes, downgrade, recorder, quota, book, settings.default_max_tokens)
    _add_generation(app, desk)
    if responses is None:
        responses = MemoryStore(int(settings.responses_mb * 1e6), settings.responses_hours * 3600)
    _add_responses(app, desk, responses, settings.cors_origins)
    _add_models(app, known)
    _add_operations(app, known, metrics, drain)
    others = [named.name for named in known.named if named.name != known.main.id]
    app.openapi = cache(  # type: ignore[method-assign]
        lambda: document(known.main.id, others, needs_key=keyring.required)
    )
    return app


def _allow_browsers(app: FastAPI, origins: tuple[str, ...]) -> None:
    exposed = ["x-request-id", "request-id", "retry-after", "retry-after-ms"]
    app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=exposed)


def _add_generation(app: FastAPI, desk: Desk) -> None:
    openai, anthropic = OpenAIEndpoints(desk), AnthropicEndpoints(desk)
    app.add_api_route("/v1/chat/completions", openai.chat, methods=["POST"])
    app.add_api_route("/v1/completions", openai.completions, methods=["POST"])
    app.add_api_route("/v1/messages", anthropic.messages, methods=["POST"])
    app.add_api_route("/v1/messages/count_tokens", anthropic.count_tokens, methods=["POST"])


def _add_responses(app: FastAPI, desk: Desk, store: ResponseStore, origins: tuple[str, ...]) -> None:
    turns = Turns(desk, store)
    made = ResponsesEndpoints(desk, turns, store)
    path, one = "/v1/responses", "/v1/responses/{response_id}"
    app.add_api_route(path, made.create, methods=["POST"])
    app.add_api_route(f"{path}/input_tokens", made.input_tokens, methods=["POST"])
    app.add_api_route(one, made.retrieve, methods=["GET"])
    app.add_api_route(one, made.delete, methods=["DELETE"])
    app.add_api_route(f"{one}/input_items", made.input_items, methods=["GET"])
    app.add_api_websocket_route(path, ResponsesSocket(desk, turns, origins).serve)


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

    _add_read(app, "/v1/models", listed)
    _add_read(app, "/v1/models/{model_id:path}", model)


def _add_operations(app: FastAPI, models: Models, metrics: Metrics, drain: Drain) -> None:
    async def root() -> Response:
        return JSONResponse({"name": "headway", "version": __version__, "models": [named.name for named in models.named]})

    async def health() -> Response:
        if not all(served.generator.alive for served in models):
            return JSONResponse({"status": "failed"}, 503)
        return JSONResponse({"status": "draining"}, 503) if drain.draining else JSONResponse({"status": "ok"})

    async def scrape() -> Response:
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})

    _add_read(app, "/", root)
    _add_read(app, "/health", health)
    _add_read(app, "/metrics", scrape)


def _add_read(app: FastAPI, path: str, endpoint: Callable[..., Any]) -> None:
    """GET, and HEAD beside it."""
    for method in ("GET", "HEAD"):
        app.add_api_route(path, endpoint, methods=[method])
