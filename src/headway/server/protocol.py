"""uvicorn's HTTP protocol, with a limit on headers, error bodies in JSON, and an eye on clients that leave."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headway.errors import RequestError
from headway.server.openai.errors import error_body

MAX_HEAD_BYTES = 65_536
"""Request line and headers together."""

MAX_UPGRADE_HEADERS = 100
MAX_UPGRADE_LINE = 8_000
"""Bytes of one header, or of the request line's URL."""

MOST_PIPELINED = 8
"""Requests that wait for the answers before them while more is read of their connection."""

TOO_LARGE = RequestError(431, f"The request's headers are larger than {MAX_HEAD_BYTES} bytes.")

TOO_LARGE_TO_UPGRADE = RequestError(
    431, f"A WebSocket's request may have {MAX_UPGRADE_HEADERS} headers of up to {MAX_UPGRADE_LINE} bytes."
)


class Protocol(HttpToolsProtocol):
    """The parser sets no limit of its own and keeps an unfinished header in memory for as long as it grows."""

    _head_bytes = 0
    _in_head = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._cycles: list[RequestResponseCycle] = []

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn tells the last request that was read, which needn't be the one that is being answered."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def _unanswered(self) -> list[RequestResponseCycle]:
        return [cycle for cycle in self._cycles if not cycle.response_complete]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(TOO_LARGE, b"HTTP/1.1 431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        app, self.app = self.app, self.app if size <= MAX_HEAD_BYTES else _too_large
        super().on_headers_complete()
        self.app = app
        self._cycles = [*self._unanswered(), *([self.cycle] if self.cycle is not None else [])]
        if 0 < len(self.pipeline) <= MOST_PIPELINED:
            self.flow.resume_reading()  # else nobody would see the client leave

    def handle_websocket_upgrade(self) -> None:
        """The WebSocket's own parser, which the request goes through again, has smaller limits and no answer to what breaks
        them."""
        longest = max(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.headers) > MAX_UPGRADE_HEADERS or max(longest, len(self.url)) > MAX_UPGRADE_LINE:
            self._refuse(TOO_LARGE_TO_UPGRADE, b"HTTP/1.1 431 Request Header Fields Too Large")
            return
        super().handle_websocket_upgrade()

    def _should_upgrade(self) -> bool:
        return self.parser.get_method() == b"GET" and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._refuse(RequestError(400, "This is not a valid HTTP/1.1 request."), b"HTTP/1.1 400 Bad Request")

    def _refuse(self, error: RequestError, status_line: bytes) -> None:
        """Ends the connection; where one request ends and the next begins is no longer known."""
        body = json.dumps(error_body(error)).encode()
        head = [
            status_line,
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + body)
        self.transport.close()


async def _too_large(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse(error_body(TOO_LARGE), TOO_LARGE.status, {"connection": "close"})(scope, receive, send)
