"""Requests made from the server's own OpenAPI document, by schemathesis: those that it allows and those that it doesn't. No
answer may be a failure of the server's, and every one must be as the document says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
INSTALLED = importlib.util.find_spec("schemathesis") is not None


def fuzz(url: str, folder: Path, *how: str) -> None:
    """how: options of `schemathesis run`. folder: for what it keeps. Raises AssertionError with all that it found."""
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run"]
    options = ["--no-color", "--continue-on-failure", "--request-timeout", "30", "--warnings", "off", *how]
    done = subprocess.run([*command, f"{url}/openapi.json", *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "generated" in done.stdout, done.stdout
