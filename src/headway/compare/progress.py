"""How far a measurement is: a bar on a terminal, a line per phase elsewhere. Always on stderr."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

TICK_SECONDS = 0.5


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

    Before `plan` is called it shows a spinner.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            refresh_per_second=2,  # drawing takes time from the cores that are being measured
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._phase = ""

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


async def sleep(seconds: float, reporter: Reporter) -> None:
    """Sleep and tell the reporter about each bit of it."""
    while seconds > 0:
        step = min(TICK_SECONDS, seconds)
        await asyncio.sleep(step)
        reporter.advance(step)
        seconds -= step
