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
    ones, (yes, no), all_weights = _drawn(right)
    return _middle((ones + yes) / (all_weights + yes + no))


def per_right_interval(amounts: Sequence[float], right: Sequence[bool]) -> Interval | None:
    """Of the amounts (seconds, dollars) of all answers over the number of right ones. None without a right one."""
    if not any(right):
        return None
    rng = np.random.default_rng(SEED)
    weights = rng.standard_gamma(1.0, (DRAWS, len(right)))
    yes, no = rng.standard_gamma(0.5, (2, DRAWS))
    values = np.asarray(amounts, dtype=float)
    spent = weights @ values + (yes + no) * values.mean()
    return _middle(spent / (weights @ np.asarray(right, dtype=float) + yes))


def difference_interval(right: Sequence[bool], others: Sequence[bool]) -> Interval | None:
    """Of the difference of two shares (the first minus the second) on the same tasks, in the same order."""
    if not right:
        return None
    rng = np.random.default_rng(SEED)
    weights = rng.standard_gamma(1.0, (DRAWS, len(right)))
    one, other = rng.standard_gamma(0.5, (2, DRAWS))
    gaps = np.asarray(right, dtype=float) - np.asarray(others, dtype=float)
    return _middle((weights @ gaps + one - other) / (weights.sum(axis=1) + one + other))


def rate_interval(events: Sequence[float], trials: Sequence[float]) -> Interval | None:
    """Of the events of all tasks over their trials (mistakes over steps). None without a trial."""
    if not sum(trials):
        return None
    rng = np.random.default_rng(SEED)
    weights = rng.standard_gamma(1.0, (DRAWS, len(trials)))
    event, none = rng.standard_gamma(0.5, (2, DRAWS))
    total = weights @ np.asarray(trials, dtype=float) + event + none
    return _middle((weights @ np.asarray(events, dtype=float) + event) / total)


def _drawn(right: Sequence[bool]) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(SEED)
    weights = rng.standard_gamma(1.0, (DRAWS, len(right)))
    added = rng.standard_gamma(0.5, (2, DRAWS))
    return weights @ np.asarray(right, dtype=float), added, weights.sum(axis=1)


def _middle(values: Floats) -> Interval:
    low, high = np.quantile(values, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)
