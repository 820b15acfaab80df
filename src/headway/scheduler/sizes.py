"""How many tokens a step is padded to.

Engines prepare their kernels for the shapes of a step. OpenVINO's CPU plugin does so anew for each of some 200 matrix products
whenever a step has another number of tokens than the one before it: 4.5 ms for SmolLM2 on two cores, as much as five tokens
take. So sizes come from a grid, and a size that is too large is given up only when keeping it has cost as much as changing it
and back (the ski-rental rule: never more than twice what the best decision would have cost).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from math import inf
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Grid:
    """The sizes a step may have: multiples of `multiple` for the first entry (limit, multiple) with tokens <= limit, beyond the
    last limit multiples of the last one. No entries: any size."""

    entries: tuple[tuple[int, int], ...] = ()

    def up(self, tokens: int) -> int:
        """The smallest size on the grid that is at least `tokens`."""
        if not self.entries:
            return tokens
        for limit, multiple in self.entries:
            if tokens <= limit:
                return -(-tokens // multiple) * multiple
        multiple = self.entries[-1][1]
        return -(-tokens // multiple) * multiple


ANY_SIZE = Grid()


class Costs(Protocol):
    """What has to be known of a cost model."""

    grid: Grid

    @property
    def change(self) -> float:
        """Seconds that a step takes longer if its size is another than the last one's."""

    def seconds(self, tokens: int) -> float: ...


class StepSizes:
    """Sizes for one step after the other."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._wasted = 0.0  # seconds, since a step last needed the size
        self.size = 0
        """Of the last step."""

    def fit(self, tokens: int) -> int:
        """The size, at least `tokens`, of a step that needs room for so many. Changes nothing."""
        wanted = self._costs.grid.up(tokens)
        if wanted >= self.size or self._costs.change <= 0.0:
            return wanted
        return self.size if self._wasted + self._waste(wanted) <= 2 * self._costs.change else wanted

    def settled(self, tokens: int) -> bool:
        """Whether steps that need room for so many go on with the size of the last one for good."""
        wanted = self._costs.grid.up(tokens)
        return wanted == self.size or (wanted < self.size and self._costs.change > 0.0 and self._waste(wanted) <= 0.0)

    def within(self, seconds: float, tokens: int) -> StepSizes:
        """These; or, if a step of the last size takes longer than `seconds` and one for `tokens` less, change included, such as
        give up the last size at once: somebody's next token would wait for it."""
        kept, wanted = self._costs.seconds(self.size), self._costs.seconds(tokens) + self._costs.change
        if kept <= seconds or wanted >= kept:
            return self
        anew = copy.copy(self)
        anew._wasted = inf
        return anew

    def take(self, needed: int, size: int) -> None:
        """Note that a step that needed room for `needed` tokens has `size`."""
        waste = self._waste(self._costs.grid.up(needed)) if size == self.size else 0.0
        self._wasted = self._wasted + waste if waste > 0.0 else 0.0
        self.size = size

    def _waste(self, wanted: int) -> float:
        if wanted == self.size:
            return 0.0
        return self._costs.seconds(self.size) - self._costs.seconds(wanted)
