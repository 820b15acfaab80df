"""A made-up vocabulary, and random walks under a grammar."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from headway.grammar.compiler import Compiler
from headway.grammar.constraint import Constraint
from headway.grammar.matcher import Matcher

EOS, OTHER_EOS, CALLS = 256, 257, 258
WORDS = ['{"', '": ', '", "', '"}', '": "', '"a', "true", "null", "name", "12", ", ", "}}", "éé", "ab", "abc"]
TOKEN_BYTES = [bytes([byte]) for byte in range(256)] + [b"", b"", b""] + [word.encode() for word in WORDS]


def encode(text: str) -> list[int]:
    """The longest words first; [CALLS] is one special token."""
    if text == "[CALLS]":
        return [CALLS]
    left, ids = text.encode(), []
    while left:
        token = max(
            (i for i, word in enumerate(TOKEN_BYTES) if word and left.startswith(word)), key=lambda i: len(TOKEN_BYTES[i])
        )
        ids.append(token)
        left = left[len(TOKEN_BYTES[token]) :]
    return ids


def compiler() -> Compiler:
    return Compiler(TOKEN_BYTES, {EOS, OTHER_EOS}, encode)


@cache
def shared() -> Compiler:
    return compiler()


def start(constraint: Constraint) -> Matcher:
    return shared().compile(constraint).start()


def choices(matcher: Matcher) -> list[int]:
    ids: list[int] = np.flatnonzero(~matcher.allowed().forbidden).tolist()
    return ids


def closing_of(token_bytes: Sequence[bytes]) -> NDArray[np.bool_]:
    """[vocabulary]: the tokens that close something, or end it all."""
    return np.array([not token or token[:1] in b'"}],' for token in token_bytes])


CLOSING = closing_of(TOKEN_BYTES)


def text_of(tokens: Sequence[int], token_bytes: Sequence[bytes] = TOKEN_BYTES) -> str:
    return b"".join(token_bytes[token] for token in tokens).decode("utf-8", "replace")


def walk(
    matcher: Matcher,
    rng: random.Random,
    most: int,
    closing: NDArray[np.bool_] = CLOSING,
    look: Callable[[Matcher], object] = lambda matcher: None,
) -> list[int]:
    """Tokens at random among those allowed, with a liking for what closes something; `most` of them at the most."""
    tokens: list[int] = []
    while not matcher.finished and len(tokens) < most:
        look(matcher)
        ids = np.flatnonzero(~matcher.allowed().forbidden)
        ends = ids[closing[ids]]
        tokens.append(int(rng.choice(ends if len(ends) and rng.random() < 0.4 else ids)))
        matcher.accept(tokens[-1])
    return tokens
