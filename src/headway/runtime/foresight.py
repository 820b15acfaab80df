"""Asking a draft head, or a draft model, how requests go on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headway.engines.base import Engine
from headway.scheduler.lookup import DraftSource
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Received, Scheduler
from headway.scheduler.step import Step

log = logging.getLogger("headway.loop")


@dataclass(frozen=True, slots=True)
class Guess:
    """likelihoods[k]: what the guesser gives the k-th token if those before it are right."""

    tokens: list[int]
    likelihoods: list[float]


class Guesser(Protocol):
    source: DraftSource

    def guess(self, asked: Sequence[tuple[int, Request]]) -> list[Guess]:
        """How requests go on; each with the row of the last logits that its last token was sampled from."""

    def close(self) -> None: ...


class HeadGuesser:
    """The draft head that the engine has."""

    source = DraftSource.DRAFT_HEAD

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def guess(self, asked: Sequence[tuple[int, Request]]) -> list[Guess]:
        guesses, likelihoods = self._engine.draft([place for place, _ in asked], [r.tokens[-1] for _, r in asked])
        return [Guess(*both) for both in zip(guesses.tolist(), likelihoods.tolist(), strict=True)]

    def close(self) -> None:
        """It ends with the engine."""


class Foresight:
    """Used by the engine's thread alone. A guesser that fails costs speed, no more: it is not asked again."""

    def __init__(self, guesser: Guesser | None, scheduler: Scheduler) -> None:
        self._guesser = guesser
        self._scheduler = scheduler
        self._wanted: list[tuple[int, Request]] = []

    def note(self, step: Step, received: Sequence[Received]) -> None:
        """Of a step that is complete: for whom to ask before the next one starts."""
        if self._guesser is None:
            return
        wanted = self._scheduler.worth_foreseeing(received)
        self._wanted = _places(step, wanted) if wanted else []

    def ask(self) -> None:
        """For those noted last. It takes a millisecond or so of the device, which is part of the next step."""
        asked, self._wanted = self._wanted, []
        if not asked or self._guesser is None:
            return
        try:
            guesses = self._guesser.guess(asked)
        except Exception:  # whatever went wrong with guesses must not end the requests
            log.exception("what makes drafts failed, and is not used any more")
            self._guesser = None
            return
        for (_, request), guess in zip(asked, guesses, strict=True):
            if guess.tokens:
                self._scheduler.foresee(request, guess.tokens, guess.likelihoods, self._guesser.source)


def _places(step: Step, wanted: Sequence[Received]) -> list[tuple[int, Request]]:
    """Requests that shall be foreseen, and the row of logits that the last token of each came from."""
    first = 0
    starts: dict[str, int] = {}
    for row in step.rows:
        starts[row.request.id] = first + row.num_scored
        first += row.num_samples
    return [(starts[w.request.id] + w.num_tokens - 1, w.request) for w in wanted]
