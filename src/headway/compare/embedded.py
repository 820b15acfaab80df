"""A server of our own for the length of a measurement: `headway serve` in a process of its own."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator, Sequence
from types import FrameType

from headway.compare.progress import Reporter
from headway.errors import HeadwayError

START_SECONDS = 900.0  # a first start may have to download the model
STOP_SECONDS = 15.0
_URL = re.compile(r"https?://[^\s/]+:\d+")
_STOP_SIGNALS = ("SIGTERM", "SIGHUP")


class EmbeddedServer:
    """A server's process and what it said last. It prints its URL in a line of its own once it listens."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches us alone, and we stop the server in our own order
        )
        self._lines: deque[str] = deque(maxlen=50)
        self._url: str | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_line(self) -> str:
        return self._lines[-1] if self._lines else ""

    def wait_ready(self, reporter: Reporter) -> str:
        """The server's URL once its /health answers 200. Raises HeadwayError with the server's last line if it ends first."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            if self._url is not None and _healthy(self._url):
                return self._url
            reporter.phase("starting the server")
            time.sleep(0.1)
        raise HeadwayError(f"the server was not ready within {START_SECONDS:.0f} s: {self.last_line}")

    def check(self) -> None:
        """Raises HeadwayError if the server has ended."""
        if self._process.poll() is None:
            return
        self._reader.join(timeout=1.0)
        said = self.last_line or f"the server ended with status {self._process.returncode} and said nothing"
        raise HeadwayError(said.removeprefix("headway: "))

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if that isn't heeded."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(timeout=1.0)

    def _read(self) -> None:
        if self._process.stdout is None:
            return
        for line in self._process.stdout:
            if line.strip():
                self._lines.append(line.strip())
            if self._url is None and (found := _URL.search(line)):
                self._url = found.group()


def serve_command(model: str, streams: int, spark: str | None = None) -> list[str]:
    """`headway serve` on a free port, with a seat for every standard stream; nobody's usage."""
    command = [sys.executable, "-m", "headway", "serve", model, "--port", "0", "--max-rows", str(streams), "--no-ledger"]
    return command if spark is None else [*command, "--spark", spark]


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[EmbeddedServer]:
    """A server that is stopped however the block is left, also by Ctrl-C, by SIGTERM or by the terminal's closing."""
    with _stop_signals_raise():
        server = EmbeddedServer(command)
        try:
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def _stop_signals_raise() -> Iterator[None]:
    """Signals that would end this process on the spot leave it through the `finally` blocks instead."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in _STOP_SIGNALS if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may set handlers
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _healthy(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy from the environment can't reach it
    try:
        with direct.open(f"{url}/health", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
