"""How many tokens a step is padded to.

When a step has another number of tokens than the one before it, the CPU plugin prepares each of some 200 matrix products anew:
4.5 ms for SmolLM2 on two cores, as much as ten tokens take (a step of 1 token: 10.3 ms if the last one had 1 too, else 14.9;
of 32 tokens: 30.5 and 35.2). So the size stays as it is while a few tokens too many cost less than a change.
"""

from __future__ import annotations

from collections import deque

CHANGE = 10
"""What a change of size costs, in tokens."""
WINDOW = 6
"""A size that none of so many last steps needed is given up."""


class StickySize:
    """Sizes for one step after the other."""

    def __init__(self) -> None:
        self._size = 0
        self._recent: deque[int] = deque(maxlen=WINDOW)

    def fit(self, tokens: int) -> int:
        """The number of tokens, at least `tokens`, that the next step should have."""
        wanted = _rounded(tokens)
        self._recent.append(wanted)
        if wanted > self._size or self._size - wanted > CHANGE:
            self._recent.clear()
            self._recent.append(wanted)
            self._size = wanted
        elif len(self._recent) == WINDOW:
            self._size = max(self._recent)
        return self._size


def _rounded(tokens: int) -> int:
    """Up to the next size of a scale: close sizes then are the same. Four tokens take hardly longer than one (10.9 and 10.2
    ms), and a row that decodes alone mostly has drafts to fill them."""
    step = 4 if tokens <= 64 else 16
    return -(-tokens // step) * step
