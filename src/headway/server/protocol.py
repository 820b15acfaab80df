"""uvicorn's HTTP protocol, with a limit on headers and error bodies in JSON."""

from __future__ import annotations

import json

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headway.errors import RequestError
from headway.server.openai.errors import error_body

MAX_HEAD_BYTES = 65_536
"""Request line and headers together."""

MAX_UPGRADE_HEADERS = 100
MAX_UPGRADE_LINE = 8_000
"""Bytes of one header, or of the request line's URL."""

TOO_LARGE = RequestError(431, f"The request's headers are larger than {MAX_HEAD_BYTES} bytes.")

TOO_LARGE_TO_UPGRADE = RequestError(
    431, f"A WebSocket's request may have {MAX_UPGRADE_HEADERS} headers of up to {MAX_UPGRADE_LINE} bytes."
)


class Protocol(HttpToolsProtocol):
    """The parser sets no limit of its own and keeps an unfinished header in memory for as long as it grows."""

    _head_bytes = 0
    _in_head = False

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
        if size <= MAX_HEAD_BYTES:
            super().on_headers_complete()
            return
        app, self.app = self.app, _too_large
        super().on_headers_complete()
        self.app = app

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
