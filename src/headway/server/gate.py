"""The outermost layer of the application: request ids, draining, keys, the access log, and the last resort for exceptions."""

from __future__ import annotations

import logging
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.access.keys import Caller, Keyring
from headway.errors import RequestError
from headway.server.drain import Drain
from headway.server.errors import REQUEST_ID, error_response, new_request_id, speaks_anthropic
from headway.server.visit import VISIT, Visit

log = logging.getLogger("headway.server")
access_log = logging.getLogger("headway.access_log")
access_log.setLevel(logging.WARNING)  # until run_server is told to log requests
REFUSAL = RequestError(503, "The server is shutting down; send this request again.", retry_after=1.0)
ALWAYS_OPEN = frozenset({"/health", "/metrics"})
"""While the server drains."""
WITHOUT_KEY = frozenset({"/health"})
"""Load balancers ask without one, and it tells nothing of the users. /metrics does, by its totals."""


class Gate:
    """ASGI middleware. It sits inside the CORS layer, so that a page can read errors too, and preflights need no key."""

    def __init__(self, app: ASGIApp, drain: Drain, keyring: Keyring) -> None:
        self.app = app
        self.drain = drain
        self.keyring = keyring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        scope[REQUEST_ID] = request_id = new_request_id()
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
            return
        names = [b"x-request-id", *([b"request-id"] if speaks_anthropic(scope) else [])]
        status, began = 0, time.monotonic()

        async def tagged(message: Message) -> None:
            nonlocal status
            if not status:
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *((name, request_id.encode()) for name in names)]
            await send(message)

        try:
            await self._answer(scope, receive, tagged)
        except Exception as exc:
            if not isinstance(exc, RequestError):
                log.exception("%s %s failed (%s)", scope["method"], scope["path"], request_id)
                exc = RequestError(500, f"Internal error; the server's log has it under {request_id}.")
            if status:
                raise
            await error_response(exc, scope)(scope, receive, tagged)
        finally:
            if access_log.isEnabledFor(logging.INFO):
                access_log.info("%s", _line(scope, status, time.monotonic() - began))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.drain.draining and scope["path"] not in ALWAYS_OPEN:
            await error_response(REFUSAL, scope, {"connection": "close"})(scope, receive, send)
            return
        try:
            scope[VISIT] = Visit(self._caller(scope))
        except RequestError as refusal:
            await error_response(refusal, scope, {"www-authenticate": "Bearer"})(scope, receive, send)
            return
        with self.drain.request():
            await self.app(scope, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket: its key counts for all that is asked for on it."""
        try:
            if self.drain.draining:
                raise REFUSAL
            scope[VISIT] = Visit(self._caller(scope))
        except RequestError as refusal:
            await error_response(refusal, scope)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope) -> Caller:
        address = _address(scope)
        if scope["path"] in WITHOUT_KEY:
            return Caller("", address, address)
        return self.keyring.caller(Headers(scope=scope), address)


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _line(scope: Scope, status: int, seconds: float) -> str:
    """Address, key, request, status, seconds to the answer's end, and the modes that were asked for and served."""
    visit: Visit | None = scope.get(VISIT)
    key = visit.caller.name if visit is not None else ""
    path = scope["path"].encode("ascii", "backslashreplace").decode()
    what = "".join(letter if letter.isprintable() else "?" for letter in f"{scope['method']} {path}")
    line = f'{_address(scope) or "-"} {key or "-"} "{what:.200}" {status or "-"} {seconds:.3f}s'
    if visit is not None and visit.requested is not None:
        line += f" requested={visit.requested} served={visit.served or '-'} billed={visit.served or '-'}"
    return f"{line} {scope[REQUEST_ID]}"
