"""Asking the engine's draft head how requests go on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headway.engines.base import Engine
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Received, Scheduler
from headway.scheduler.step import Step

log = logging.getLogger("headway.loop")


class Foresight:
    """Used by the engine's thread alone. A head that fails costs speed, no more: it is not asked again."""

    def __init__(self, engine: Engine, scheduler: Scheduler) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._works = engine.info.num_drafts > 0
        self._wanted: list[tuple[int, Request]] = []

    def note(self, step: Step, received: Sequence[Received]) -> None:
        """Of a step that is complete: for whom to ask before the next one starts."""
        if not self._works:
            return
        wanted = self._scheduler.worth_foreseeing(received)
        self._wanted = _places(step, wanted) if wanted else []

    def ask(self) -> None:
        """For those noted last. It takes a millisecond or so of the device, which is part of the next step."""
        asked, self._wanted = self._wanted, []
        if not asked:
            return
        try:
            guesses, likelihoods = self._engine.draft([place for place, _ in asked], [r.tokens[-1] for _, r in asked])
        except Exception:  # whatever went wrong with guesses must not end the requests
            log.exception("the draft head failed, and is not used any more")
            self._works = False
            return
        for (_, request), tokens, likely in zip(asked, guesses.tolist(), likelihoods.tolist(), strict=True):
            self._scheduler.foresee(request, tokens, likely)


def _places(step: Step, wanted: Sequence[Received]) -> list[tuple[int, Request]]:
    """Requests that shall be foreseen, and the row of logits that the last token of each came from."""
    first = 0
    starts: dict[str, int] = {}
    for row in step.rows:
        starts[row.request.id] = first + row.num_scored
        first += row.num_samples
    return [(starts[w.request.id] + w.num_tokens - 1, w.request) for w in wanted]
