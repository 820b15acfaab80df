"""Running the application: from listening sockets to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from headway.config import ServerSettings
from headway.server.drain import Drain
from headway.server.protocol import Protocol
from headway.server.sockets import BACKLOG, base_url, bind

__all__ = ["base_url", "bind", "run_server"]

log = logging.getLogger("headway.server")
PING_SECONDS = 20.0
"""Between pings on a WebSocket: they keep it open where something on the way would close what is idle."""
TERMINAL_EVENT_SECONDS = 2.0
"""How long cancelled requests and open connections get for their last bytes."""


def run_server(
    app: FastAPI, sockets: list[socket.socket], on_started: Callable[[str], None], *, access_log: bool = False
) -> None:
    """Serves until SIGINT or SIGTERM, then returns once everything has ended; a second signal ends the process at once.

    sockets: from `bind`; on_started: called with the URL when requests are being answered. On the first signal no
    new connection and no new request is taken, running requests get `grace_s` seconds to finish, and what then still
    runs ends with an error event.
    """
    settings: ServerSettings = app.state.settings
    if access_log:
        _log_access()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # malformed requests are answered, not reported
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="websockets-sansio",
        ws_max_size=int(settings.max_body_mb * 1e6),
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=None,  # a client that runs a tool for minutes may not read meanwhile; TCP finds out who is gone
        ws_per_message_deflate=False,  # small messages in haste
        lifespan="off",
        log_config=None,
        access_log=False,  # the Gate's says more
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(settings.keep_alive_s),
        backlog=BACKLOG,
    )
    port = sockets[0].getsockname()[1]
    server = _Server(config, app.state.drain, settings.grace_s, lambda: on_started(base_url(settings.host, port)))
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=sockets))


def _log_access() -> None:
    """One line of plain text for each request, however wide the terminal is."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("headway.access_log")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, drain: Drain, grace: float, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain = drain
        self._grace = grace
        self._on_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's, doesn't raise the signals again afterwards: an orderly end exits with 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            sys.stderr.flush()
            os._exit(128 + sig)  # threads of the engine may be deep in a step: nothing is waited for
        self.should_exit = True
        self._drain.begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        if not await self._drain.wait(self._grace):
            ended = self._drain.abort()
            log.warning("ended %d requests that were still running after %g s", ended, self._grace)
            await self._drain.wait(TERMINAL_EVENT_SECONDS)
        await self._close_connections()

    async def _close_connections(self) -> None:
        """Idle ones now, the others when their answer is out, all of them soon."""
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TERMINAL_EVENT_SECONDS):
                while self.server_state.tasks:
                    await asyncio.sleep(0.01)
        for task in list(self.server_state.tasks):
            task.cancel()
