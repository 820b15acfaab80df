"""Every failure as an OpenAI error body: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headway.errors import RequestError

TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
CODES = {429: "rate_limit_exceeded", 503: "service_unavailable"}
SHORTEST_RETRY = 0.05
"""Seconds. A refusal always names a wait, so that clients don't come back in the same instant."""


def error_object(error: RequestError) -> dict[str, Any]:
    """The value of "error". Lone surrogates, which a request can smuggle into a message, are replaced: UTF-8 has none."""
    kind = "server_error" if error.status >= 500 else TYPES.get(error.status, "invalid_request_error")
    message = error.message.encode("utf-8", "replace").decode()
    param = error.param and error.param.encode("utf-8", "replace").decode()
    return {"message": message, "type": kind, "param": param, "code": error.code or CODES.get(error.status)}


def error_bytes(error: RequestError) -> bytes:
    return json.dumps({"error": error_object(error)}).encode()


def error_response(error: RequestError, headers: dict[str, str] | None = None) -> Response:
    """With `retry-after` (whole seconds, at least 1) and `retry-after-ms` on 429 and wherever a wait is known."""
    headers = dict(headers or {})
    wait = error.retry_after if error.retry_after is not None else (1.0 if error.status == 429 else None)
    if wait is not None:
        wait = max(wait, SHORTEST_RETRY)
        headers["retry-after"] = str(max(1, math.ceil(wait)))
        headers["retry-after-ms"] = str(math.ceil(wait * 1000))
    return Response(error_bytes(error), error.status, headers, "application/json")


async def on_http_exception(request: Request, exc: Exception) -> Response:
    """What the router itself refuses: unknown paths and methods."""
    assert isinstance(exc, HTTPException)
    what = f"{request.method} {request.url.path}"
    messages = {
        404: f"There is nothing at {what}. Paths: /v1/chat/completions, /v1/completions, /v1/models, /health, /metrics.",
        405: f"{what} is not allowed; this path takes {(exc.headers or {}).get('Allow', 'other methods')}.",
    }
    error = RequestError(exc.status_code, messages.get(exc.status_code, str(exc.detail)))
    return error_response(error, dict(exc.headers or {}))


async def on_request_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestError)
    return error_response(exc)
