"""What the user asks of a comparison of capability, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.compare.suites import SUITES
from headway.compare.suites.task import Suite
from headway.errors import UsageError

DEFAULT_TASKS = 40
EVERY = "all"


@dataclass(frozen=True, slots=True)
class CapabilityOptions:
    """quick: few tasks of each suite. suites: names joined by commas, or EVERY; None = all. tasks: of each suite; None = as
    quick says, else DEFAULT_TASKS. seed: of the tasks. thinking: output tokens beyond what an answer needs. report: an HTML
    page. plots: a folder for PNGs."""

    quick: bool = False
    suites: str | None = None
    tasks: int | None = None
    seed: int = 0
    thinking: int = 0
    report: Path | None = None
    plots: Path | None = None

    @property
    def wanted(self) -> bool:
        """Whether capability is to be compared at all."""
        return self.quick or self.suites is not None

    def check(self) -> None:
        """Raises UsageError that says what is wrong."""
        for name, value in (("--report", self.report), ("--plots", self.plots), ("--tasks", self.tasks)):
            if value is not None and not self.wanted:
                raise UsageError(f"{name} is of the comparison of capability: say --quick, or --suites {EVERY}")
        if self.tasks is not None and self.tasks < 1:
            raise UsageError(f"--tasks must be at least 1, not {self.tasks}")
        if self.thinking < 0:
            raise UsageError(f"--thinking must be at least 0, not {self.thinking}")
        if self.report is not None and not self.report.parent.is_dir():
            raise UsageError(f"--report: the folder {self.report.parent} doesn't exist")
        self.chosen()

    def chosen(self) -> tuple[list[Suite], list[str]]:
        """The suites, and notes on those that can't be used here. Raises UsageError for names that no suite has, and for suites
        that were named and can't be used."""
        if self.suites is None or self.suites.strip() == EVERY:
            usable = [suite for suite in SUITES if suite.missing() is None]
            return usable, [f"{suite.name} is left out: {why}" for suite in SUITES if (why := suite.missing()) is not None]
        by_name = {suite.name: suite for suite in SUITES}
        names = list(dict.fromkeys(name.strip() for name in self.suites.split(",") if name.strip()))
        if unknown := next((name for name in names if name not in by_name), None):
            raise UsageError(f"--suites: there is no {unknown!r}; there are {EVERY}, {', '.join(by_name)}")
        if not names:
            raise UsageError(f"--suites names none; there are {EVERY}, {', '.join(by_name)}")
        for name in names:
            if (why := by_name[name].missing()) is not None:
                raise UsageError(f"--suites {name}: {why}")
        return [by_name[name] for name in names], []

    def counts(self, suites: Sequence[Suite]) -> dict[str, int]:
        """How many tasks of each suite."""
        many = {suite.name: suite.quick if self.quick else DEFAULT_TASKS for suite in suites}
        return many if self.tasks is None else dict.fromkeys(many, self.tasks)
