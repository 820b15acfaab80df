"""Intervals by the Bayesian bootstrap (Rubin, "The Bayesian Bootstrap", Annals of Statistics 9, 1981): each draw gives the
tasks random weights (a flat Dirichlet's), and the figure is computed anew; the middle 95% of the draws are the interval.

Half a right and half a wrong answer are added to the tasks (Jeffreys' prior), because a bootstrap of nothing but right answers
would claim to be certain after three of them. Weights are drawn with a fixed seed: the same answers give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 4000
LEVEL = 0.95
SEED = 20260201

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def share_interval(right: Sequence[bool]) -> Interval | None:
    """Of the share of right answers. None without answers."""
    if not right:
        return None
    weights, yes, no = _drawn(len(right))
    return _middle((weights @ _floats(right) + yes) / (weights.sum(axis=1) + yes + no))


def per_right_interval(amounts: Sequence[float], right: Sequence[bool]) -> Interval | None:
    """Of the amounts (seconds, dollars) of all answers over the number of right ones. None without a right one."""
    if not any(right):
        return None
    weights, yes, no = _drawn(len(right))
    values = _floats(amounts)
    spent = weights @ values + (yes + no) * values.mean()
    return _middle(spent / (weights @ _floats(right) + yes))


def difference_interval(right: Sequence[bool], others: Sequence[bool]) -> Interval | None:
    """Of the difference of two shares (the first minus the second) on the same tasks, in the same order."""
    if not right:
        return None
    weights, one, other = _drawn(len(right))
    gaps = _floats(right) - _floats(others)
    return _middle((weights @ gaps + one - other) / (weights.sum(axis=1) + one + other))


def rate_interval(events: Sequence[float], trials: Sequence[float]) -> Interval | None:
    """Of the events of all tasks over their trials (mistakes over steps). None without a trial."""
    if not sum(trials):
        return None
    weights, event, none = _drawn(len(trials))
    total = weights @ _floats(trials) + event + none
    return _middle((weights @ _floats(events) + event) / total)


def _drawn(count: int) -> tuple[Floats, Floats, Floats]:
    """Weights of so many tasks [draws, count], and of the half answers that are added, one of each kind [draws]."""
    rng = np.random.default_rng(SEED)
    weights = rng.standard_gamma(1.0, (DRAWS, count))
    first, second = rng.standard_gamma(0.5, (2, DRAWS))
    return weights, first, second


def _floats(values: Sequence[float]) -> Floats:
    return np.asarray(values, dtype=float)


def _middle(values: Floats) -> Interval:
    low, high = np.quantile(values, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)
