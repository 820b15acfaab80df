"""Guesses by a smaller model that reads along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.engines import open_engine
from headway.engines.base import BatchRow, Engine
from headway.errors import UsageError
from headway.runtime.foresight import Guess
from headway.runtime.opened import Say, graph_folder
from headway.scheduler.lookup import DraftSource
from headway.scheduler.request import Request
from headway.text.tokenizer import Tokenizer

CATCH_UP = 96
"""Tokens that are read in one go at the most: a long prompt is read bit by bit, so that no step waits for all of it."""
NUM_DRAFTS = 3
SEATS = 8
"""Requests with a full context that its memory holds."""
WORTH = 0.35
"""A further token is guessed only while the chance that all guesses so far come true is this high: a guess costs a step of the
small model, which is about a fifth of the large one's."""


class _Seat:
    """tokens: those whose keys and values lie in `blocks`. agreed: how many of them are the request's own for certain."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.agreed = 0
        self.blocks: list[int] = []

    def follow(self, request: Request) -> Sequence[int]:
        """What is left to read; at least the last token. What it had guessed and proved wrong is forgotten."""
        theirs = request.tokens
        n, end = self.agreed, min(len(self.tokens), len(theirs) - 1)
        while n < end and self.tokens[n] == theirs[n]:
            n += 1
        del self.tokens[n:]
        self.agreed = n
        return theirs[n:]


class DraftModel:
    """Keeps keys and values of its own for each request that it was asked about lately. Not thread-safe, as its engine."""

    source = DraftSource.DRAFT_MODEL

    def __init__(self, engine: Engine) -> None:
        """engine: of a model with the same vocabulary; nobody else runs it."""
        self._engine = engine
        self._size = engine.info.block_size
        self._free = list(range(engine.info.num_blocks))
        self._seats: dict[str, _Seat] = {}  # the one asked about last comes last

    def guess(self, asked: Sequence[tuple[int, Request]]) -> list[Guess]:
        """Of requests, how each goes on; without tokens where it hasn't read everything yet. The places are not used."""
        seats = [self._seat(request) for _, request in asked]
        ready = self._read(seats, [request for _, request in asked])
        guesses = [Guess([], []) for _ in asked]
        chances = [1.0] * len(asked)
        while ready:
            going = []
            for i, logits in ready.items():
                token = int(logits.argmax())
                likely = float(1.0 / np.exp(logits - logits[token]).sum())
                guesses[i].tokens.append(token)
                guesses[i].likelihoods.append(likely)
                chances[i] *= likely
                if len(guesses[i].tokens) < NUM_DRAFTS and chances[i] >= WORTH and self._reserve(seats, seats[i], 1):
                    going.append(i)
            ready = self._step(seats, {i: guesses[i].tokens[-1:] for i in going}, going)
        return guesses

    def close(self) -> None:
        self._engine.close()

    def _seat(self, request: Request) -> _Seat:
        seat = self._seats.pop(request.id, None) or _Seat()
        self._seats[request.id] = seat
        return seat

    def _read(self, seats: Sequence[_Seat], requests: Sequence[Request]) -> dict[int, NDArray[np.float32]]:
        """Read on, for all of them, as far as one step goes. Logits after the last token of those that have read everything."""
        room = CATCH_UP
        reading: dict[int, Sequence[int]] = {}
        complete = []
        for i, (seat, request) in enumerate(zip(seats, requests, strict=True)):
            left = seat.follow(request)
            n = min(len(left), room, self._engine.info.context_length - len(seat.tokens))
            if n < 1 or not self._reserve(seats, seat, n):
                continue
            room -= n
            reading[i] = left[:n]
            if n == len(left):
                complete.append(i)
        return self._step(seats, reading, complete)

    def _step(
        self, seats: Sequence[_Seat], reading: dict[int, Sequence[int]], wanted: Sequence[int]
    ) -> dict[int, NDArray[np.float32]]:
        if not reading:
            return {}
        rows = [BatchRow(tokens, len(seats[i].tokens), seats[i].blocks, int(i in wanted)) for i, tokens in reading.items()]
        self._engine.start(rows, self._engine.info.grid.up(sum(len(row.tokens) for row in rows)))
        logits = self._engine.wait()
        for i, tokens in reading.items():
            seats[i].tokens += tokens
        return dict(zip(wanted, logits, strict=True))

    def _reserve(self, seats: Sequence[_Seat], seat: _Seat, tokens: int) -> bool:
        """Blocks for so many more tokens; where there are none, of whoever was not asked about for longest."""
        need = -(-(len(seat.tokens) + tokens) // self._size) - len(seat.blocks)
        while need > len(self._free):
            oldest = next((i for i, other in self._seats.items() if other not in seats and other.blocks), None)
            if oldest is None:
                return False
            self._free += self._seats.pop(oldest).blocks
        seat.blocks += [self._free.pop() for _ in range(need)]
        return True


def open_draft_model(model: LocalModel, tokenizer: Tokenizer, settings: Settings, say: Say) -> DraftModel:
    """tokenizer: of the model that it guesses for. Raises ModelError or UsageError, also for one of another vocabulary."""
    say("reading the tokenizer")
    own = Tokenizer.load(model.path)
    shared = min(own.vocab_size, tokenizer.vocab_size)
    if own.token_bytes[:shared] != tokenizer.token_bytes[:shared] or own.eos_ids != tokenizer.eos_ids:
        raise UsageError(f"{model.id} has another vocabulary, so it can't make drafts for this model: leave out --draft-model")
    folder = graph_folder(model, settings, say)
    say("loading the model")
    engine = settings.engine.model_copy(update={"kv_memory": None})
    return DraftModel(open_engine(folder, engine, model.context_length, SEATS * model.context_length))
