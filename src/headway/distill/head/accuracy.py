"""How often a draft head guesses right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.distill.answers import Answers, Halves

Ints = NDArray[np.int64]

Guess = Callable[[Halves, Ints], Ints]
"""Features [n, layers * hidden] and the tokens chosen there [n] to guesses [n, ahead]."""
ROWS = 64


@dataclass(frozen=True, slots=True)
class Accuracy:
    """in_a_row[k]: how often the first k + 1 guesses are all right. places: where that was tried."""

    in_a_row: tuple[float, ...]
    places: int

    @property
    def by_guess(self) -> tuple[float, ...]:
        """How often each guess is right if those before it are."""
        before = (1.0, *self.in_a_row[:-1])
        return tuple(now / then if then else 0.0 for now, then in zip(self.in_a_row, before, strict=True))

    @property
    def accepted(self) -> float:
        """Guesses that a step which verifies all of them accepts, on average; it brings one token more than that."""
        return sum(self.in_a_row)


def places_with(answers: Answers, following: int) -> Ints:
    """The tokens after which so many more follow in the same answer."""
    places: Ints = np.arange(max(0, len(answers.tokens) - following))
    found: Ints = places[answers.sequence[places] == answers.sequence[places + following]]
    return found


def accuracy(guess: Guess, answers: Answers, ahead: int, most: int | None = None) -> Accuracy:
    """Try `guess` after every token that has `ahead` more after it, or at `most` of these places, evenly spread."""
    places = places_with(answers, ahead)
    if most is not None and len(places) > most:
        places = places[np.linspace(0, len(places) - 1, most).astype(np.int64)]
    right = np.zeros(ahead)
    for start in range(0, len(places), ROWS):
        here = places[start : start + ROWS]
        guesses = guess(answers.rows(here), answers.tokens[here])
        truth = np.stack([answers.tokens[here + 1 + k] for k in range(ahead)], axis=1)
        right += np.cumprod(guesses == truth, axis=1).sum(axis=0)
    return Accuracy(tuple(float(r) / max(1, len(places)) for r in right), len(places))
