"""The outermost layer of the application: request ids, draining, and the last resort for exceptions."""

from __future__ import annotations

import logging
import uuid

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.errors import RequestError
from headway.server.drain import Drain
from headway.server.errors import REQUEST_ID, error_response, speaks_anthropic

log = logging.getLogger("headway.server")
ALWAYS_OPEN = frozenset({"/health", "/metrics"})
REFUSAL = RequestError(503, "The server is shutting down; send this request again.", retry_after=1.0)


class Gate:
    """ASGI middleware. It sits inside the CORS layer, so that a page can read errors too."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self.app = app
        self.drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket" and self.drain.draining:
                await error_response(REFUSAL, scope)(scope, receive, send)
                return
            await self.app(scope, receive, send)
            return
        scope[REQUEST_ID] = request_id = f"req_{uuid.uuid4().hex}"
        names = [b"x-request-id", *([b"request-id"] if speaks_anthropic(scope) else [])]
        started = False

        async def tagged(message: Message) -> None:
            nonlocal started
            if not started:
                started = True
                message["headers"] = [*message.get("headers", ()), *((name, request_id.encode()) for name in names)]
            await send(message)

        if self.drain.draining and scope["path"] not in ALWAYS_OPEN:
            await error_response(REFUSAL, scope, {"connection": "close"})(scope, receive, tagged)
            return
        try:
            with self.drain.request():
                await self.app(scope, receive, tagged)
        except Exception as exc:
            if not isinstance(exc, RequestError):
                log.exception("%s %s failed (%s)", scope["method"], scope["path"], request_id)
                exc = RequestError(500, f"Internal error; the server's log has it under {request_id}.")
            if started:
                raise
            await error_response(exc, scope)(scope, receive, tagged)
