"""Failures in OpenAI's words: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from typing import Any

from headway.errors import RequestError
from headway.server.body import printable

TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
CODES = {429: "rate_limit_exceeded", 503: "service_unavailable"}


def error_body(error: RequestError) -> dict[str, Any]:
    kind = "server_error" if error.status >= 500 else TYPES.get(error.status, "invalid_request_error")
    code = error.code or CODES.get(error.status)
    param = error.param and printable(error.param)
    return {"error": {"message": printable(error.message), "type": kind, "param": param, "code": code}}
