"""Modes: the speeds one can ask for, and what each of them promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class ModeName(StrEnum):
    STANDARD = "standard"
    FAST = "fast"
    SPARK = "spark"


SPEEDS = (ModeName.STANDARD, ModeName.FAST)
"""Those that one and the same model has; spark is of a model of its own."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode of one model.

    pace: tokens per second promised to each request from its first token on. TPOT = 1 / pace.
    max_rows: how many requests of this mode are served at once at the most; more wait in the queue.
    max_waiting: how many may wait; beyond that a request is refused (429).
    ttft_target: seconds from arrival to the first token that the scheduler aims at (orders prefill; a promise only where a
    request asks for one).
    """

    name: ModeName
    pace: float
    max_rows: int
    max_waiting: int
    ttft_target: float


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of a served model. base: what a request gets that asks for no speed, standard or, of a spark, spark. fast: None
    where there is none."""

    base: Mode
    fast: Mode | None = None

    @property
    def highest(self) -> float:
        """The highest pace, in tokens/s."""
        return self.base.pace if self.fast is None else self.fast.pace

    def __getitem__(self, name: ModeName) -> Mode:
        """Raises KeyError for a mode that this model doesn't have."""
        for mode in self:
            if mode.name is name:
                return mode
        raise KeyError(name)

    def __iter__(self) -> Iterator[Mode]:
        return iter((self.base,) if self.fast is None else (self.base, self.fast))
