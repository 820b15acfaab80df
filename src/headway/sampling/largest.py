"""The largest of many logits, without putting them all in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.sampling.scratch import Floats

_GROUPS = 256
_SMALLEST = float(np.finfo(np.float32).min)


def largest(row: Floats, n: int) -> NDArray[np.intp]:
    """Places of the n largest (all, if there are fewer), in falling order; equal ones in order of their places."""
    ids = np.flatnonzero(row >= just_below(lower_bound(row, n)))
    if len(ids) < n:  # what is infinitely unlikely was left out, but is wanted here
        ids = np.arange(len(row))
    return ids[np.argsort(-row[ids], kind="stable")][:n]


def lower_bound(row: Floats, n: int) -> float:
    """A value that at least n reach, and not many more; -inf if there are only n or fewer.

    Of 2n groups or more, the n-th largest maximum is such a value: the maxima themselves reach it. Groups are tokens at equal
    distances, so that the maxima of all are found by going through the row once, in order.
    """
    if n >= len(row):
        return -np.inf
    groups = max(_GROUPS, 2 * n)
    each = len(row) // groups
    if each < 2:
        return float(np.partition(row, -n)[-n])
    maxima = row[: each * groups].reshape(each, groups).max(axis=0)
    return float(np.partition(maxima, -n)[-n])


def just_below(value: float) -> np.float32:
    """The largest float32 below `value`; at least the smallest finite one, which leaves out what is infinitely unlikely."""
    if value <= _SMALLEST:
        return np.float32(_SMALLEST)
    below: np.float32 = np.nextafter(np.float32(value), np.float32(_SMALLEST))
    return below
