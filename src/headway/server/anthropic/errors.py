"""Failures in Anthropic's words: `{"type": "error", "error": {"type", "message"}, "request_id"}`, once with `details`."""

from __future__ import annotations

from typing import Any

from headway.errors import RequestError
from headway.server.body import printable

OVERLOADED = 529
THREAD_UNSUPPORTED = "thread_unsupported_request"
"""The code by which the SDKs' tool runners know that they have to send the whole conversation each time."""
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def status(error: RequestError) -> int:
    """Anthropic's API has no 503: a server that can't take anything now is overloaded."""
    return OVERLOADED if error.status == 503 else error.status


def error_body(error: RequestError, request_id: str) -> dict[str, Any]:
    code = status(error)
    kind = TYPES.get(code, "api_error" if code >= 500 else "invalid_request_error")
    detail: dict[str, Any] = {"type": kind, "message": printable(error.message)}
    if error.code == THREAD_UNSUPPORTED:
        detail["details"] = {"error_code": error.code, "unsupported": [error.param]}
    return {"type": "error", "error": detail, "request_id": request_id}
