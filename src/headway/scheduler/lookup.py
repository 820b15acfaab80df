"""Drafts for the next tokens, at no cost: what followed the last time the same tokens came (prompt lookup).

They are taken from the request's own text, prompt and output, from the prediction that came with it, if one did, and from
earlier answers to the same key. Text that repeats (code being edited, an extract, a summary, a small model going in circles)
is guessed right often. A draft is only a guess: it is verified in the step, and a token counts only if it is the one that
sampling gives at its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from headway.scheduler.phrases import Phrases

MAX_DRAFTS = 15
LONGEST = 5
"""Last tokens looked up at most: a longer match first."""
SURE = 2
"""Length of a match from which the own text is a better guide than earlier answers."""
START, EARLIER = 0, LONGEST + 1
ACCEPTANCE = (0.5, 0.2, 0.5, 0.55, 0.65, 0.85, 0.35)
"""How likely a draft is right whose last n predecessors came before, measured on chat answers of SmolLM2; START: at the
beginning of a prediction, EARLIER: from an earlier answer. A row's own experience soon replaces it."""
AT_ONCE = 256
"""Tokens that are entered into the index in one step at most: a long prompt all at once would hold up a step."""
LEARN = 0.15
"""Weight of the newest guess in a row's experience."""


class DraftSource(StrEnum):
    """Where drafts come from."""

    OWN_TEXT = "own_text"
    PREDICTION = "prediction"
    EARLIER_ANSWER = "earlier_answer"
    DRAFT_HEAD = "draft_head"
    DRAFT_MODEL = "draft_model"
    GRAMMAR = "grammar"
    """What a constraint on the output forces."""


class Lookup:
    """An index of where each n-gram was last followed by something; it grows with the text.

    prediction: text that the caller expects the output to resemble.
    """

    def __init__(self, prediction: Sequence[int] = ()) -> None:
        self._prediction = prediction
        # Where an n-gram's successor stands: in the text, or in the prediction as -1 - position.
        self._next: dict[tuple[int, ...], int] = {}
        self._indexed = 0
        self._acceptance = list(ACCEPTANCE)
        self.phrases: Phrases | None = None
        self.match = START
        """Length of the n-gram that the last proposal came from; or START or EARLIER."""
        self.predicted = False
        """Whether the last proposal came from the prediction."""
        for end in range(1, len(prediction)):
            for n in range(1, min(LONGEST, end) + 1):
                self._next.setdefault(tuple(prediction[end - n : end]), -1 - end)

    @property
    def source(self) -> DraftSource:
        """Of the last proposal."""
        if self.predicted:
            return DraftSource.PREDICTION
        return DraftSource.EARLIER_ANSWER if self.match == EARLIER else DraftSource.OWN_TEXT

    def propose(self, tokens: Sequence[int], num_output: int, at_most: int) -> list[int]:
        """Up to min(at_most, MAX_DRAFTS) tokens that may follow `tokens`, the last `num_output` of which are output; empty if
        nothing like their end came before."""
        self.enter(tokens, len(tokens))
        at_most = min(at_most, MAX_DRAFTS)
        if at_most <= 0:
            return []
        for n in range(min(LONGEST, len(tokens)), 0, -1):
            if n < SURE and (drafts := self._earlier(tokens, at_most)):
                return drafts
            start = self._next.get(tuple(tokens[-n:]))
            if start is not None:
                self.match, self.predicted = n, start < 0
                return self._continue(tokens, start, at_most)
        self.match, self.predicted = START, True
        return list(self._prediction[:at_most]) if num_output == 0 else []

    def survival(self, k: int) -> float:
        """How likely the k-th of the drafts last proposed is right, if those before it are."""
        return self._acceptance[self._kind(k)]

    def learn(self, drafts: Sequence[int], received: Sequence[int]) -> None:
        """See which of the drafts last proposed came true, also of those that were not verified: these cost nothing to learn
        from."""
        for k, (guess, token) in enumerate(zip(drafts, received, strict=False)):
            at = self._kind(k)
            hit = guess == token
            self._acceptance[at] += LEARN * (hit - self._acceptance[at])
            if not hit:
                return

    def _kind(self, k: int) -> int:
        """Of the k-th draft, as ACCEPTANCE counts them."""
        return EARLIER if self.match == EARLIER else min(self.match + k, LONGEST)

    def _earlier(self, tokens: Sequence[int], at_most: int) -> list[int]:
        drafts = self.phrases.propose(tokens, at_most) if self.phrases is not None else []
        if drafts:
            self.match, self.predicted = EARLIER, False
        return drafts

    def _continue(self, tokens: Sequence[int], start: int, n: int) -> list[int]:
        """n tokens from `start` on; where the text ends, it is taken to go on as it does from `start` (a loop)."""
        if start < 0:
            return list(self._prediction[-1 - start : -1 - start + n])
        period = len(tokens) - start
        return [tokens[start + i % period] for i in range(n)]

    def enter(self, tokens: Sequence[int], upto: int) -> None:
        """Enter the n-grams that have got a successor among the first `upto` tokens since the last call (the last of them has
        none yet), AT_ONCE of them at most; the others follow in the next call."""
        upto = min(upto, self._indexed + AT_ONCE)
        for end in range(max(self._indexed, 1), upto):
            for n in range(1, min(LONGEST, end) + 1):
                self._next[tuple(tokens[end - n : end])] = end
        self._indexed = max(self._indexed, upto)
