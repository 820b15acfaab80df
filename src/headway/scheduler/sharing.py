"""Several models on one device: whose step is next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pressing:
    """What a model has to do. due: when the most urgent of its requests should have its next token, less the lead it keeps.
    seconds: that the step for it takes, as far as can be foretold. newcomer: somebody waits for a first token."""

    due: float
    seconds: float
    newcomer: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """Which model's turn it is, and when its step should have ended for the others' sake."""

    index: int
    until: float


def whose_turn(models: Sequence[Pressing | None], now: float) -> Turn | None:
    """None for a model without work, and if none has any.

    First come those that would be late if another's step came first, and among them the one with the shortest step: while a
    small model's step runs, a large one loses a fraction of a token, the other way round it is several. It then runs on until
    it is so far ahead that it can wait. Whoever is promised a pace has room for it (Promises), so that this ends. With nobody
    in a hurry, newcomers' prompts are computed, then the earliest due comes first: all get ahead of their paces in step.
    """
    at_work = [(i, p) for i, p in enumerate(models) if p is not None]
    if not at_work:
        return None
    hurried = [(i, p) for i, p in at_work if now + p.seconds + _longest(at_work, i) > p.due]
    if hurried:
        index, _ = min(hurried, key=lambda pair: pair[1].seconds)
    else:
        index, _ = min(at_work, key=lambda pair: (not pair[1].newcomer, pair[1].due))
    return Turn(index, min((p.due - p.seconds for i, p in at_work if i != index), default=math.inf))


def _longest(at_work: Sequence[tuple[int, Pressing]], but: int) -> float:
    return max((p.seconds for i, p in at_work if i != but), default=0.0)
