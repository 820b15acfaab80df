"""Weights in falling order, of which only the parts that are looked at are ever sorted."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headway.sampling.scratch import Floats

_FEW = 1024
"""So many are sorted in less time than it takes to class them."""
_SHIFT = 18
"""32 classes for each power of two: the highest five bits of a float32's fraction."""

_Part = tuple[Floats, NDArray[np.float64]]


class Ranked:
    """values: not negative, not empty. Ranks count from 0, the largest value's.

    Floats that are not negative stand in the order of their bits, so the highest bits class them; a class holds some hundredth
    of all, and its count and its sum tell whether a rank or a mass lies in it.
    """

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._parts: dict[int, _Part] = {}
        if len(values) <= _FEW:
            self._ends = np.array([len(values)])
            self._masses = np.zeros(1)  # never looked at: there is nothing before the only class
            return
        bits = values.view(np.int32)
        self._classes = (bits.max() - bits) >> _SHIFT
        self._ends = np.bincount(self._classes).cumsum()
        self._masses = np.bincount(self._classes, weights=values).cumsum()

    def __getitem__(self, rank: int) -> np.float32:
        place, start = self._find(rank)
        value: np.float32 = self._part(place)[0][rank - start]
        return value

    def mass(self, count: int) -> float:
        """Sum of the `count` largest, at least one."""
        place, start = self._find(count - 1)
        return float(self._part(place)[1][count - 1 - start])

    def reach(self, mass: float, side: Literal["left", "right"]) -> int:
        """The rank with which the sum from the largest on comes to (left) or exceeds (right) `mass`; the last if none does."""
        last = len(self._ends) - 1
        place = min(int(self._masses.searchsorted(mass, side=side)), last) if last else 0
        start = int(self._ends[place - 1]) if place else 0
        cumulative = self._part(place)[1]
        return start + min(int(cumulative.searchsorted(mass, side=side)), len(cumulative) - 1)

    def _find(self, rank: int) -> tuple[int, int]:
        """The class that holds a rank, and the rank of its first value."""
        place = int(self._ends.searchsorted(rank, side="right")) if len(self._ends) > 1 else 0
        return place, int(self._ends[place - 1]) if place else 0

    def _part(self, place: int) -> _Part:
        """A class in falling order, and the sums from the largest value of all up to each of its own."""
        if place not in self._parts:
            values = self._values
            if len(self._ends) > 1:
                values = values[np.flatnonzero(self._classes == place)]
            ordered = np.sort(values)[::-1]
            before = float(self._masses[place - 1]) if place else 0.0
            cumulative = ordered.cumsum(dtype=np.float64)
            cumulative += before
            self._parts[place] = ordered, cumulative
        return self._parts[place]
