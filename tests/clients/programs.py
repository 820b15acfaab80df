"""Clients as programs of their own: with an empty environment and a home of their own, they know no other address than the
server's.

Those that `make test-clients` installs are scripts beside this file which run some steps and print what each gave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cases.client import Client, Json

HERE = Path(__file__).parent
INSTALLED = os.environ.get("HEADWAY_TEST_CLIENTS")
"""The folder that `make test-clients` has installed them in: `venv` and `node`."""
ONLY_WHEN_ASKED = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not INSTALLED, reason="runs with `make test-clients`"),
]
STEPS_SECONDS = 400.0


def run(command: list[str], home: Path, environment: Mapping[str, str], seconds: float = 240.0) -> str:
    """What a command that must succeed printed."""
    done = attempt(command, home, environment, seconds)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return done.stdout


def attempt(
    command: list[str], home: Path, environment: Mapping[str, str], seconds: float = 240.0
) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    known = {"HOME": str(home), "PATH": f"{Path(shutil.which('node') or '/usr/bin/node').parent}:/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(
        command,
        env={**known, **environment},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


class Told:
    """What each step gave, by its name. A step that failed fails who asks for it."""

    def __init__(self, steps: Json) -> None:
        self._steps = steps

    def __getitem__(self, name: str) -> Any:
        step = self._steps[name]
        assert "gave" in step, f"{name}: {step['failed']}"
        return step["gave"]


@dataclass(frozen=True)
class Program:
    """script: beside this file. It takes the server's URL, the model and the names of steps."""

    script: str
    home: Path
    environment: Mapping[str, str]

    def steps(self, server: Client, *names: str) -> Told:
        told = run([*self._command(), server.url, server.model, *names], self.home, self.environment, STEPS_SECONDS)
        return Told(json.loads(told.splitlines()[-1]))

    def _command(self) -> list[str]:
        assert INSTALLED is not None
        installed = Path(INSTALLED).resolve()
        if self.script.endswith(".py"):
            return [str(installed / "venv" / "bin" / "python"), str(HERE / "python" / self.script)]
        node = shutil.which("node")
        if node is None or not (installed / "node" / "node_modules").is_dir():
            pytest.skip("there is no Node")
        for script in (HERE / "node").glob("*.mjs"):  # Node looks for packages from the script's folder upwards
            shutil.copy(script, installed / "node")
        return [node, str(installed / "node" / self.script)]
