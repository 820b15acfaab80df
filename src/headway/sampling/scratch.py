"""Room to work on one row of logits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

BLOCK = 256
LARGE = 1e30
"""As good as infinite for a logit, but still a number to calculate with."""
_SAFE = 60.0
"""exp of logits from 0 to here can be summed up as it is, in single precision and over any vocabulary."""


class Scratch:
    """One row's worth of memory, used for row after row so that it stays in the processor's cache. What a method returns is
    valid until the next one is called, except that weigh() may be given what copy() returned."""

    def __init__(self, vocabulary: int) -> None:
        self._blocks: Floats = np.empty((-(-vocabulary // BLOCK), BLOCK), np.float32)
        flat = self._blocks.reshape(-1)
        flat[vocabulary:] = 0.0  # stays so: sums of blocks need no exception for the last
        self._row = flat[:vocabulary]

    def copy(self, row: Floats) -> Floats:
        np.copyto(self._row, row)
        return self._row

    def weigh(self, row: Floats, best: float, scale: float) -> Floats:
        """exp((logit - best) * scale) of every token."""
        return _weigh(row, best, scale, self._row)

    def weigh_some(self, values: Floats, best: float, scale: float) -> Floats:
        """The same, to the last bit, of some logits."""
        return _weigh(values, best, scale, values)

    def block_sums(self) -> NDArray[np.float64]:
        """Sums of what weigh() returned, over BLOCK tokens each."""
        sums: Floats = np.einsum("ij->i", self._blocks)
        return sums.astype(np.float64)

    def log_total(self, row: Floats) -> float:
        """Natural logarithm of the sum of exp(logit)."""
        best = float(row.max())
        if not 0.0 <= best <= _SAFE:
            self.weigh(row, best, 1.0)
            return best + math.log(float(self.block_sums().sum()))
        np.exp(row, out=self._row)
        return math.log(float(self.block_sums().sum()))


def _weigh(values: Floats, best: float, scale: float, out: Floats) -> Floats:
    # The maximum goes first: a tiny temperature then can't overflow to the wrong side.
    np.subtract(values, np.float32(best), out=out)
    if scale != 1.0:
        np.multiply(out, np.float32(scale), out=out)
    return np.exp(out, out=out)
