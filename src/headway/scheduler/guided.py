"""Drafts for a request whose output a grammar holds to a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headway.scheduler.lookup import MAX_DRAFTS, DraftSource, Lookup

CERTAIN = 0.99
"""That a forced token comes. Less than one: of a forced text that is cut somewhere, the last token may turn out another."""


class Guide(Protocol):
    """The grammar of one request, at the place that its output has come to. finished: nothing may follow."""

    finished: bool

    def forced(self, at_most: int) -> list[int]:
        """The next tokens, as far as there is no choice."""

    def fitting(self, tokens: Sequence[int]) -> int:
        """How many of the tokens could come next, one after the other."""


class GuidedLookup(Lookup):
    """What the grammar forces, else what Lookup proposes, up to where the grammar would refuse it."""

    def __init__(self, prediction: Sequence[int], guide: Guide) -> None:
        super().__init__(prediction)
        self._guide = guide
        self._num_forced = 0

    def propose(self, tokens: Sequence[int], num_output: int, at_most: int) -> list[int]:
        forced = self._guide.forced(min(at_most, MAX_DRAFTS))
        drafts = super().propose(tokens, num_output, at_most)
        drafts = drafts[: self._guide.fitting(drafts)]
        self._num_forced = len(forced)
        if drafts[: len(forced)] == forced:
            return drafts
        self.predicted = False
        return forced

    @property
    def source(self) -> DraftSource:
        return DraftSource.GRAMMAR if self._num_forced else super().source

    def survival(self, k: int) -> float:
        return CERTAIN if k < self._num_forced else super().survival(k)

    def learn(self, drafts: Sequence[int], received: Sequence[int]) -> None:
        """From guesses alone: what was forced says nothing of how good they are."""
        if not self._num_forced:
            super().learn(drafts, received)
