"""`headway serve` as a process."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from cases.client import Client

START_SECONDS = 300.0
URL = re.compile(r"https?://(?:\[[^]]*\]|[^\s/:]+):\d+")


class ServerProcess:
    """Started at once; `client()` waits until it answers. `lines` is all that it wrote, both streams together."""

    def __init__(self, *args: str) -> None:
        command = [sys.executable, "-m", "headway", "serve", *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.lines: list[str] = []
        self._url = ""
        self._answers = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def client(self) -> Client:
        url = self.url()
        models = Client(url, "").get("/v1/models").json["data"]
        return Client(url, models[0]["id"])

    def url(self) -> str:
        end = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            if self._answers.wait(0.1):
                return self._url
        self._reader.join(1)
        raise AssertionError(f"the server printed no URL:\n{self.log}")

    def wait(self, seconds: float = 60.0) -> int:
        """Its exit status."""
        status = self.process.wait(seconds)
        self._reader.join(5)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if not self._url and (found := URL.search(line)):
                self._url = found.group()
                self._answers.set()


def serve(model: Path | str, *args: str) -> ServerProcess:
    return ServerProcess(str(model), "--port", "0", "--no-ledger", *args)
