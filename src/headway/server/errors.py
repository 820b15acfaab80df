"""Every failure as an error body of the dialect that was spoken."""

from __future__ import annotations

import json
import math
import uuid
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from headway.errors import RequestError
from headway.server.anthropic import errors as anthropic
from headway.server.openai import errors as openai

SHORTEST_RETRY = 0.05
"""Seconds. A refusal always names a wait, so that clients don't come back in the same instant."""
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/models", "/health", "/metrics")
REQUEST_ID = "headway.request_id"
"""The scope's key for the id that the Gate gives each request."""


def new_request_id() -> str:
    return f"req_{uuid.uuid4().hex}"


def speaks_anthropic(scope: Scope) -> bool:
    """By the path; the one path that both dialects have, /v1/models, by the version header that Anthropic's clients send."""
    path: str = scope["path"]
    if path.startswith("/v1/messages"):
        return True
    return path.startswith("/v1/models") and "anthropic-version" in Headers(scope=scope)


def retry_headers(error: RequestError) -> dict[str, str]:
    """`retry-after` (whole seconds, at least 1) and `retry-after-ms`, on 429 and wherever a wait is known."""
    wait = error.retry_after if error.retry_after is not None else (1.0 if error.status == 429 else None)
    if wait is None:
        return {}
    wait = max(wait, SHORTEST_RETRY)
    return {"retry-after": str(max(1, math.ceil(wait))), "retry-after-ms": str(math.ceil(wait * 1000))}


def error_response(error: RequestError, scope: Scope, headers: dict[str, str] | None = None) -> Response:
    """With `retry_headers`."""
    headers = {**(headers or {}), **retry_headers(error)}
    if speaks_anthropic(scope):
        body: dict[str, Any] = anthropic.error_body(error, scope[REQUEST_ID])
        status = anthropic.status(error)
    else:
        body, status = openai.error_body(error), error.status
    return Response(json.dumps(body), status, headers, "application/json")


async def on_http_exception(request: Request, exc: Exception) -> Response:
    """What the router itself refuses: unknown paths and methods."""
    assert isinstance(exc, HTTPException)
    what = f"{request.method} {request.url.path}"
    headers = {"allow": _allowed(request)} if exc.status_code == 405 else dict(exc.headers or {})
    messages = {
        404: f"There is nothing at {what}. Paths: {', '.join(PATHS)}.",
        405: f"{what} is not allowed; this path takes {headers.get('allow')}.",
    }
    error = RequestError(exc.status_code, messages.get(exc.status_code, str(exc.detail)))
    return error_response(error, request.scope, headers)


def _allowed(request: Request) -> str:
    """Of all routes that share the path of the first that matches: the router itself tells that one's alone."""
    first = next(route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    same = (route for route in request.app.routes if getattr(route, "path", None) == getattr(first, "path", None))
    return ", ".join(sorted({method for route in same for method in getattr(route, "methods", None) or ()}))


async def on_request_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestError)
    return error_response(exc, request.scope)
