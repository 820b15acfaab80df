"""`headway` as a user types it, in this process: a new one takes a second to start."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headway.cli import main


@dataclass(frozen=True)
class Done:
    status: int
    stdout: str
    stderr: str


class CommandLine:
    """One of headway's commands, typed in a folder."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._name = name
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["headway", self._name, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(int(ended.value.code or 0), *self._capsys.readouterr())

    def report(self, name: str = "o.json") -> dict[str, Any]:
        """The JSON that a command has written into the folder."""
        loaded: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return loaded
