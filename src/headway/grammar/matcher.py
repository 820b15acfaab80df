"""One request's place in its grammar."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

FEW = 1024
"""Among so many a token is chosen in less time than it takes to go through a whole vocabulary."""
DEAD_END = "the constraint leads to a dead end: no token fits any more"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The tokens that may come next. forbidden: [vocabulary], true for those that may not. few: the ids of those that may, in
    rising order, if they are few."""

    forbidden: NDArray[np.bool_]
    few: NDArray[np.intp] | None

    @property
    def only(self) -> int | None:
        """The one that may come, if it is the only one."""
        return int(self.few[0]) if self.few is not None and len(self.few) == 1 else None


class Matcher:
    """Made by Grammar.start(), of a native one at its start, which it leaves there. Not for several threads at a time.

    finished: the output is complete, nothing may follow (or it has failed). failure: why the grammar can't go on, if it can't;
    the output is then not what it should be.
    """

    def __init__(self, native: LLMatcher, vocab_size: int, eos_ids: Sequence[int]) -> None:
        self.finished = False
        self.failure: str | None = None
        self._start = native
        self._native = native.deep_copy()
        self._tokens: list[int] = []
        self._vocab_size = vocab_size
        self._eos_ids = list(eos_ids)
        self._ahead: deque[Allowed] = deque()  # for the next token and, along _path, for those after it
        self._path: deque[int] = deque()

    def prepare(self, drafts: Sequence[int]) -> None:
        """Compute what may come next, and what may come after each of the drafts that the grammar allows: while the device is
        busy, so that allowed() has it at hand."""
        self._ahead.clear()
        self._path.clear()
        if self.finished:
            return
        self._ahead.append(self._compute())
        if not drafts or self.failure:
            return
        for token in drafts:
            if self._ahead[-1].forbidden[token] or not self._native.consume_token(token):
                break
            self._path.append(token)
            mask = None if self._native.is_stopped() else self._mask()
            if mask is None:
                break
            self._ahead.append(_allowed(mask))
        if self._native.is_error() or not self._native.rollback(len(self._path)):
            # An error is for ever; but a draft that leads nowhere must leave no trace if it does not come true.
            self._native = self._start.deep_copy()
            self._native.consume_tokens(self._tokens)

    def allowed(self) -> Allowed:
        """What may come next."""
        if not self._ahead:
            self._ahead.append(self._compute())
        return self._ahead[0]

    def accept(self, token: int) -> None:
        """Take note of a token that has come; it must be an allowed one."""
        if self.finished:
            return
        if self._path and self._path[0] == token:
            self._path.popleft()
            self._ahead.popleft()
        else:
            self._path.clear()
            self._ahead.clear()
        self._tokens.append(token)
        if not self._native.consume_token(token):
            self._fail(self._native.get_error())
        elif self._native.is_stopped():
            self.finished = True
            if not self._native.is_accepting() and token not in self._eos_ids:
                self._fail(DEAD_END)

    def forced(self, at_most: int) -> list[int]:
        """The next tokens, as far as the grammar leaves no choice."""
        if self.finished or at_most < 1:
            return []
        return self._native.compute_ff_tokens()[:at_most]

    def fitting(self, tokens: Sequence[int]) -> int:
        """How many of the tokens could come next, one after the other."""
        return 0 if self.finished or not tokens else self._native.validate_tokens(list(tokens))

    def _compute(self) -> Allowed:
        """If the grammar can't go on: the end, so that something is there to be sampled."""
        mask = self._mask()
        if mask is not None:
            return _allowed(mask)
        self._fail(self._native.get_error() or DEAD_END)
        forbidden = np.ones(self._vocab_size, np.bool_)
        forbidden[self._eos_ids] = False
        return Allowed(forbidden, np.array(self._eos_ids, np.intp))

    def _mask(self) -> NDArray[np.bool_] | None:
        """True for allowed tokens; None if there are none, or the library has come to its limits."""
        bits = np.zeros(-(-self._vocab_size // 32), np.int32)
        try:
            self._native.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
        except ValueError:  # it can also be asked for the reason
            return None
        if self._native.is_error() or not bits.any():
            return None
        return np.unpackbits(bits.view(np.uint8), count=self._vocab_size, bitorder="little").view(np.bool_)

    def _fail(self, why: str) -> None:
        self.finished = True
        self.failure = self.failure or one_line(why)


def _allowed(mask: NDArray[np.bool_]) -> Allowed:
    return Allowed(~mask, np.flatnonzero(mask) if np.count_nonzero(mask) <= FEW else None)


def one_line(message: str) -> str:
    """Of the library's messages what a user can make something of: they may go on with its state, and begin with where in its
    own grammar it stood."""
    told = re.split(r"<state>|\n\s*\d+ \| ", message.strip())[0]
    told = re.sub(r"^at \d+\(\d+\): (failed to compile JSON schema: )?", "", told)
    return " ".join(told.split())[:300] or "the grammar failed"
