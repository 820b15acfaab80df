"""The life of a server that is started for a measurement: a small script stands in for `headway serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from headway.compare.embedded import running, serve_command
from headway.compare.progress import Silent
from headway.errors import HeadwayError

SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(f"ready on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def script(body: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(body)]


def gone(pid: int, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_server_is_waited_for_and_stopped() -> None:
    with running(script(SERVER)) as server:
        url = server.wait_ready(Silent())
        assert url.startswith("http://127.0.0.1:")
        server.check()
        pid = server.pid
    assert gone(pid)


def test_a_server_is_stopped_when_the_measuring_fails() -> None:
    with pytest.raises(RuntimeError, match="made to fail"), running(script(SERVER)) as server:
        pid = server.pid
        raise RuntimeError("made to fail")
    assert gone(pid)


def test_a_server_that_fails_has_its_last_line_passed_on() -> None:
    failing = script("import sys; print('loading'); sys.exit('no such model: nonesuch')")
    with pytest.raises(HeadwayError, match=r"no such model: nonesuch$") as caught, running(failing) as server:
        server.wait_ready(Silent())
    assert "\n" not in str(caught.value)


def test_a_server_that_says_nothing_is_described() -> None:
    with pytest.raises(HeadwayError, match="status 3"), running(script("raise SystemExit(3)")) as server:
        server.wait_ready(Silent())


def test_a_server_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.compare.embedded.STOP_SECONDS", 0.2)
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVER
    with running(script(stubborn)) as server:
        server.wait_ready(Silent())
        pid = server.pid
    assert gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_measuring_process_takes_the_server_along(number: int) -> None:
    parent = f"""
        import asyncio, sys
        from headway.compare.commands import run_async
        from headway.compare.embedded import running
        from headway.compare.progress import Silent
        with running([sys.executable, "-c", {SERVER!r}]) as server:
            server.wait_ready(Silent())
            print(server.pid, flush=True)
            run_async(asyncio.sleep(60))
    """
    process = subprocess.Popen(script(parent), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    os.kill(process.pid, number)
    assert process.wait(30) != 0
    assert gone(pid)


def test_the_server_gets_a_seat_for_every_stream() -> None:
    assert serve_command("smollm2", 32)[-7:] == ["serve", "smollm2", "--port", "0", "--max-rows", "32", "--no-ledger"]
