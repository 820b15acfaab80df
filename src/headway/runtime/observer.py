"""Who may watch the engine loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headway.modes import ModeName
from headway.runtime.api import Timing, Usage
from headway.scheduler.request import Request
from headway.scheduler.step import Step


class Observer(Protocol):
    """Told of every step and every end, in the engine's thread: be quick."""

    def on_step(self, seconds: float, rows_by_mode: Mapping[str, int], tokens: int, error: float) -> None: ...

    def on_finish(self, mode: ModeName, outcome: str, usage: Usage, timing: Timing, ttft: float | None) -> None: ...


class StepLog(Protocol):
    """Told of every step, with its rows, in the engine's thread: be quick."""

    def stepped(self, step: Step, ended: float, seconds: float) -> None: ...


class RequestLog(Protocol):
    """Told of every request's end, in the engine's thread: be quick."""

    def ended(self, request: Request, outcome: str, usage: Usage, timing: Timing) -> None: ...
