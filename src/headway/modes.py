"""Modes: the speeds one can ask for, and what each of them promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class ModeName(StrEnum):
    STANDARD = "standard"
    FAST = "fast"


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
    """The modes of a served model, by name."""

    standard: Mode
    fast: Mode

    def __getitem__(self, name: ModeName) -> Mode:
        return self.fast if name is ModeName.FAST else self.standard

    def __iter__(self) -> Iterator[Mode]:
        return iter((self.standard, self.fast))
