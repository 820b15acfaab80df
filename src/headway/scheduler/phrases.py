"""What was said in earlier answers to the same key, as a source of drafts: models like to say things in the same words.

Only a key's own answers are used for it, so that the speed of one customer's text tells nothing about another's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

LENGTHS = (4, 3, 2)
"""Last tokens that are looked up: the longer match first."""
MAX_PHRASES = 100_000
"""For each key; the oldest are forgotten."""
MAX_KEYS = 256


class Phrases:
    """What followed a few tokens the last time they were said."""

    def __init__(self) -> None:
        self._next: OrderedDict[tuple[int, ...], int] = OrderedDict()

    def learn(self, tokens: Sequence[int], num_output: int) -> None:
        """Remember the last `num_output` tokens of a text."""
        following = self._next
        for end in range(max(1, len(tokens) - num_output), len(tokens)):
            for n in LENGTHS:
                if end >= n:
                    phrase = tuple(tokens[end - n : end])
                    following[phrase] = tokens[end]
                    following.move_to_end(phrase)
        while len(following) > MAX_PHRASES:
            following.popitem(last=False)

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        """Up to n tokens that may follow."""
        tail = list(tokens[-LENGTHS[0] :])
        drafts: list[int] = []
        while len(drafts) < n:
            for length in LENGTHS:
                token = self._next.get(tuple(tail[-length:])) if len(tail) >= length else None
                if token is not None:
                    break
            if token is None:
                break
            drafts.append(token)
            tail = [*tail[-LENGTHS[0] + 1 :], token]
        return drafts


class PhraseBooks:
    """One for each key; those not used for longest are forgotten."""

    def __init__(self) -> None:
        self._books: OrderedDict[str, Phrases] = OrderedDict()

    def of(self, key: str) -> Phrases:
        book = self._books.setdefault(key, Phrases())
        self._books.move_to_end(key)
        while len(self._books) > MAX_KEYS:
            self._books.popitem(last=False)
        return book
