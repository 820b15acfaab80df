"""The part of its vocabulary that a smaller model speaks with.

The matrix over the vocabulary doesn't shrink with the layers: of a small model's step it is half. A spark may speak with the
tokens that its teacher uses most, and spell the others with those (engines/shortlist.py serves it so). What it learns from is
written anew accordingly; prompts stay as they are, since it goes on understanding every token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headway.distill.answers import Answers, Known
from headway.errors import UsageError

Ids = NDArray[np.int64]


class OutputVocabulary:
    """tokens: ids that are said, ascending."""

    def __init__(self, tokens: Ids, token_bytes: Sequence[bytes]) -> None:
        self.tokens = tokens
        self._token_bytes = token_bytes
        self._said = np.zeros(len(token_bytes), bool)
        self._said[tokens] = True
        self._by_bytes = {token_bytes[i]: i for i in reversed(tokens.tolist()) if token_bytes[i]}
        self._longest = max(map(len, self._by_bytes))
        self._spelt: dict[int, list[int]] = {}
        self._first = np.arange(len(token_bytes))
        for token in np.flatnonzero(~self._said).tolist():
            if pieces := self.spelt(token):
                self._first[token] = pieces[0]

    def spelt(self, token: int) -> list[int]:
        """The tokens that are said for this one: from the left, the longest that fits. None for one without text."""
        if self._said[token]:
            return [token]
        if (known := self._spelt.get(token)) is not None:
            return known
        text, pieces = self._token_bytes[token], []
        while text:
            piece = next(self._by_bytes[text[:n]] for n in range(self._longest, 0, -1) if text[:n] in self._by_bytes)
            pieces.append(piece)
            text = text[len(self._token_bytes[piece]) :]
        self._spelt[token] = pieces
        return pieces

    def spell(self, tokens: Sequence[int]) -> list[int]:
        return [piece for token in tokens for piece in self.spelt(token)]

    def rewritten(self, answers: Answers) -> tuple[Answers, Ids]:
        """Answers in these tokens, and of which token of the old ones each is a part [new]. Where the teacher had tokens that
        aren't said, their likelihood goes to what their spelling begins with; what follows in it is certain."""
        pieces = [self.spelt(token) for token in answers.tokens.tolist()]
        of = np.repeat(np.arange(len(pieces)), [len(p) for p in pieces])
        tokens = np.array([piece for p in pieces for piece in p], np.int64)
        begins = np.diff(of, prepend=-1) > 0
        known = self._rewritten_known(np.concatenate([np.asarray(k) for k in answers.known])[of], tokens, begins)
        return replace(answers, tokens=tokens, sequence=answers.sequence[of], known=[known]), of

    def _rewritten_known(self, known: Known, tokens: Ids, begins: NDArray[np.bool_]) -> Known:
        known["ids"] = self._first[known["ids"]]
        known["ids"][~begins] = 0
        known["ids"][~begins, 0] = tokens[~begins]
        known["logprobs"][~begins] = -np.inf
        known["logprobs"][~begins, 0] = 0
        return known


def choose(answers: Answers, token_bytes: Sequence[bytes], always: Sequence[int], count: int) -> OutputVocabulary:
    """The `count` tokens to which the teacher gave most likelihood. In any case among them are `always`, tokens without text
    that it ever said, and what it takes to spell all others: single bytes, and tokens with a byte that isn't one. Raises
    UsageError if there is no room for these."""
    mass = np.zeros(len(token_bytes))
    for piece in answers.known:
        known = np.asarray(piece)
        mass += np.bincount(
            known["ids"].ravel(), np.exp(known["logprobs"].astype(np.float64)).ravel(), minlength=len(token_bytes)
        )[: len(token_bytes)]
    single = {text for text in token_bytes if len(text) == 1}
    spelling = [
        i
        for i, text in enumerate(token_bytes)
        if len(text) == 1 or any(text[n : n + 1] not in single for n in range(len(text)))
    ]
    silent = [i for i in np.unique(answers.tokens).tolist() if not token_bytes[i]]
    mass[[*spelling, *silent, *always]] = np.inf
    if np.isinf(mass).sum() > count:
        raise UsageError(f"--vocabulary must be at least {int(np.isinf(mass).sum())} for this model, not {count}")
    return OutputVocabulary(np.sort(np.argsort(-mass, kind="stable")[:count]).astype(np.int64), token_bytes)
