"""Drafts from a request's own text: what followed the last time the same tokens came (prompt lookup).

Text that repeats (code being edited, an extract, a summary, a small model going in circles) is guessed right often, at no cost.
A draft is only a guess: it is verified in the step, and a token counts only if it is the one that sampling gives at its place.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_DRAFTS = 8
NGRAMS = (3, 2, 1)
"""How many last tokens are looked up: the longer match first."""


class Lookup:
    """An index of where each n-gram was last followed by something; it grows with the text."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, ...], int] = {}
        self._indexed = 0

    def propose(self, tokens: Sequence[int], at_most: int) -> list[int]:
        """Up to min(at_most, MAX_DRAFTS) tokens that may follow `tokens`; empty if nothing like their end came before."""
        self._index(tokens)
        at_most = min(at_most, MAX_DRAFTS)
        if at_most <= 0:
            return []
        for n in NGRAMS:
            start = self._next.get(tuple(tokens[-n:]))
            if start is not None:
                return self._continue(tokens, start, at_most)
        return []

    def _continue(self, tokens: Sequence[int], start: int, n: int) -> list[int]:
        """n tokens from `start` on; where the text ends, it is taken to go on as it does from `start` (a loop)."""
        period = len(tokens) - start
        return [tokens[start + i % period] for i in range(n)]

    def _index(self, tokens: Sequence[int]) -> None:
        """Enter the n-grams that have got a successor since the last call (the text's own end has none yet)."""
        for end in range(max(self._indexed, 1), len(tokens)):
            for n in NGRAMS:
                if end >= n:
                    self._next[tuple(tokens[end - n : end])] = end
        self._indexed = len(tokens)
