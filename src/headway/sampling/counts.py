"""How often each token has come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class TokenCounts:
    """Tokens of an output with their counts, and tokens of its prompt, which alone count 0. Kept as arrays that grow, so that
    what a token costs does not rise with the length of the output."""

    def __init__(self, prompt: Sequence[int] = ()) -> None:
        self._ids = np.unique(np.array(prompt, np.intp))
        self._counts = np.zeros(len(self._ids), np.float32)
        self._places = {token: place for place, token in enumerate(self._ids.tolist())}

    @property
    def ids(self) -> NDArray[np.intp]:
        """Each token once."""
        return self._ids[: len(self._places)]

    @property
    def counts(self) -> NDArray[np.float32]:
        """In the order of ids."""
        return self._counts[: len(self._places)]

    def add(self, token: int) -> None:
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            room = max(64, len(self._ids))
            self._ids = np.concatenate([self._ids, np.zeros(room, np.intp)])
            self._counts = np.concatenate([self._counts, np.zeros(room, np.float32)])
        self._ids[place] = token
        self._counts[place] += 1.0
