"""The application: routes, and the layers around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response

from headway import __version__
from headway.config import ServerSettings
from headway.errors import RequestError
from headway.runtime.served import ServedModel
from headway.server.drain import Drain
from headway.server.endpoint import Desk
from headway.server.errors import on_http_exception, on_request_error
from headway.server.gate import Gate
from headway.server.metrics import Metrics
from headway.server.modes import FAST_SUFFIX, FAST_WORDS, STANDARD_WORDS, is_alias
from headway.server.openai.endpoints import OpenAIEndpoints
from headway.server.openai.schemas import ChatRequest, CompletionRequest
from headway.server.openai.shapes import ERRORS, ChatCompletion, Completion, ModelCard, ModelList
from headway.server.record import Recorder
from headway.server.shapes import Health


def create_app(
    served: ServedModel,
    settings: ServerSettings,
    metrics: Metrics,
    *,
    downgrade: bool = True,
    recorder: Recorder | None = None,
) -> FastAPI:
    """metrics, recorder: those that the engine loop reports to. downgrade: a fast request that finds no seat is served at
    standard and says so; False turns that into a 429. Sets `app.state.drain` and `app.state.settings` for run_server."""
    metrics.watch(served.generator.load)
    # No documentation pages: they load scripts from elsewhere. /openapi.json describes everything.
    app = FastAPI(title="headway", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.drain = drain = Drain()
    app.state.settings = settings
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestError, on_request_error)
    app.add_middleware(Gate, drain=drain)
    if settings.cors_origins:
        _allow_browsers(app, settings.cors_origins)
    max_body_bytes = int(settings.max_body_mb * 1e6)
    _add_generation(app, Desk(served, metrics, drain, max_body_bytes, downgrade, recorder))
    _add_models(app, served)
    _add_operations(app, served, metrics, drain)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _allow_browsers(app: FastAPI, origins: tuple[str, ...]) -> None:
    exposed = ["x-request-id", "retry-after", "retry-after-ms"]
    app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=exposed)


def _add_generation(app: FastAPI, desk: Desk) -> None:
    openai = OpenAIEndpoints(desk)
    routes: list[tuple[str, Callable[..., Any], type[BaseModel], type[BaseModel]]] = [
        ("/v1/chat/completions", openai.chat, ChatRequest, ChatCompletion),
        ("/v1/completions", openai.completions, CompletionRequest, Completion),
    ]
    for path, endpoint, asked, answered in routes:
        schema = {"$ref": f"#/components/schemas/{asked.__name__}"}
        app.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            responses={
                200: {"model": answered, "description": "One object, or its chunks as events."},
                **ERRORS,
            },
            openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}},
        )


def _add_models(app: FastAPI, served: ServedModel) -> None:
    cards = {model_id: _card(served, model_id) for model_id in (served.id, served.id + FAST_SUFFIX)}

    async def models() -> Response:
        return JSONResponse({"object": "list", "data": list(cards.values())})

    async def model(model_id: str) -> Response:
        is_alias(served.id, model_id)
        return JSONResponse(cards[model_id])

    _add_read(app, "/v1/models", models, {200: {"model": ModelList}})
    _add_read(app, "/v1/models/{model_id:path}", model, {200: {"model": ModelCard}, 404: ERRORS[404]})


def _card(served: ServedModel, model_id: str) -> dict[str, Any]:
    return {
        "id": model_id,
        "object": "model",
        "created": served.created,
        "owned_by": "headway",
        "max_model_len": served.info.context_length,
        "service_tiers": [*STANDARD_WORDS, *FAST_WORDS],
        "pace": {str(mode.name): mode.pace for mode in served.modes},
        "promises": {
            "standard": {"most": served.modes.standard.max_rows},
            "fast": {"most": served.modes.fast.max_rows, "beside_full_standard": served.fast_beside_full},
        },
    }


def _add_operations(app: FastAPI, served: ServedModel, metrics: Metrics, drain: Drain) -> None:
    async def root() -> Response:
        return JSONResponse({"name": "headway", "version": __version__, "models": [served.id, served.id + FAST_SUFFIX]})

    async def health() -> Response:
        if not served.generator.alive:
            return JSONResponse({"status": "failed"}, 503)
        return JSONResponse({"status": "draining"}, 503) if drain.draining else JSONResponse({"status": "ok"})

    async def scrape() -> Response:
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})

    _add_read(app, "/", root, None)
    unhealthy = {"model": Health, "description": "Draining, or the engine has ended."}
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
        asked = [(ChatRequest, "validation"), (CompletionRequest, "validation")]
        _, schemas = models_json_schema(asked, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
        document["components"]["schemas"].update(schemas["$defs"])
        app.openapi_schema = document
    return app.openapi_schema
