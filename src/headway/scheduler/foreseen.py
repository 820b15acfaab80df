"""What a draft head or model guesses that a request will say next, and how far its word can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from headway.scheduler.lookup import DraftSource

BINS = 8
LEARN = 0.02
"""Weight of the newest guess: the experience is shared by all requests."""


class Trust:
    """How often guesses that the head thinks likely to some degree are right. It starts by believing the head."""

    def __init__(self) -> None:
        self._right = [(i + 0.5) / BINS for i in range(BINS)]

    def of(self, likelihood: float) -> float:
        return self._right[self._bin(likelihood)]

    def learn(self, likelihood: float, right: bool) -> None:
        i = self._bin(likelihood)
        self._right[i] += LEARN * (right - self._right[i])

    def _bin(self, likelihood: float) -> int:
        return min(int(likelihood * BINS), BINS - 1)


class Foreseen:
    """Guesses for the tokens from position `position` on; likelihoods[k]: what the head gives the k-th if those before it are
    right."""

    def __init__(
        self, position: int, tokens: Sequence[int], likelihoods: Sequence[float], trust: Trust, source: DraftSource
    ) -> None:
        self.source = source
        self.position = position
        self.tokens = list(tokens)
        self.survivals = [trust.of(p) for p in likelihoods]
        self._likelihoods = likelihoods
        self._trust = trust

    def learn(self, received: Sequence[int]) -> None:
        """See which came true, whether they were verified or not."""
        for guess, token, likelihood in zip(self.tokens, received, self._likelihoods, strict=False):
            self._trust.learn(likelihood, guess == token)
            if guess != token:
                return


def expected(survivals: Sequence[float]) -> float:
    """How many guesses in a row should come true."""
    total, alive = 0.0, 1.0
    for p in survivals:
        alive *= p
        total += alive
    return total
