"""How far a measurement is: a bar on a terminal, a line per phase elsewhere. Always on stderr."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

TICK_SECONDS = 0.5
NOTE_SECONDS = 30.0
"""Between lines of figures where there is no terminal."""


class Reporter(Protocol):
    """What a measurement tells about itself. seconds: of the plan that `plan` announced."""

    def plan(self, seconds: float) -> None: ...

    def phase(self, name: str) -> None: ...

    def advance(self, seconds: float) -> None: ...


class Silent:
    """Tells nobody."""

    def plan(self, seconds: float) -> None: ...

    def phase(self, name: str) -> None: ...

    def advance(self, seconds: float) -> None: ...


class Bar:
    """A progress bar with the phase's name and the time left; without a terminal, one line for each phase.

    Before `plan` is called it shows a spinner. Work in several stages, each with an amount of its own, calls `stage` for each
    and `reach` as it goes.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            refresh_per_second=2,  # drawing takes time from the cores that are being measured
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None, note="")
        self._phase = ""
        self._noted = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def plan(self, seconds: float) -> None:
        self._progress.update(self._task, total=seconds)

    def phase(self, name: str) -> None:
        if not self._console.is_terminal and name != self._phase:
            self._console.print(name, highlight=False, soft_wrap=True)
        self._phase = name
        self._progress.update(self._task, description=name)

    def advance(self, seconds: float) -> None:
        self._progress.advance(self._task, seconds)

    def stage(self, name: str, total: float, done: float = 0.0) -> None:
        """Begin with a stage of `total` units, of which `done` were done before."""
        self.phase(name)
        self._progress.reset(self._task, total=total, note="")
        self._progress.update(self._task, completed=done)
        self._noted = time.monotonic()

    def reach(self, done: float, note: str) -> None:
        """So much of the stage is done. note: its figures; without a terminal a line of them now and then."""
        self._progress.update(self._task, completed=done, note=note)
        if not self._console.is_terminal and time.monotonic() - self._noted > NOTE_SECONDS:
            self._noted = time.monotonic()
            self._console.print(f"{self._phase}: {note}", highlight=False, soft_wrap=True)


async def sleep(seconds: float, reporter: Reporter) -> None:
    """Sleep and tell the reporter about each bit of it."""
    while seconds > 0:
        step = min(TICK_SECONDS, seconds)
        await asyncio.sleep(step)
        reporter.advance(step)
        seconds -= step
