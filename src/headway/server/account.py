"""What one request costs its caller: taken from the limits, settled, and written into the ledger."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headway.access.allowance import Kind, OverLimit, Window
from headway.ledger.book import Book
from headway.ledger.entry import Entry
from headway.modes import ModeName
from headway.runtime.api import GenerateRequest
from headway.server.metrics import Metrics
from headway.server.visit import Visit

if TYPE_CHECKING:  # it brings the limits library in, which a server without limits doesn't need
    from headway.access.quota import Hold, Quota


class Account:
    """entry_id, dialect, endpoint, model: as the ledger has them. choices_per_prompt: the n of the request. quota: None if
    nothing is limited; book: None if there is no ledger."""

    def __init__(
        self,
        visit: Visit,
        *,
        entry_id: str,
        dialect: str,
        endpoint: str,
        model: str,
        choices_per_prompt: int,
        quota: Quota | None,
        book: Book | None,
        metrics: Metrics,
    ) -> None:
        self._visit = visit
        self._facts = (entry_id, time.time(), visit.caller.name, dialect, endpoint, model)
        self._choices_per_prompt = choices_per_prompt
        self._quota = quota
        self._book = book
        self._metrics = metrics
        self._hold: Hold | None = None

    @property
    def windows(self) -> Mapping[Kind, Window]:
        """The caller's limits at the mode that is served, and what is left."""
        return {} if self._hold is None else self._hold.taking.windows

    def request(self, mode: ModeName) -> None:
        """This mode is asked for."""
        self._visit.requested = mode

    async def take(self, mode: ModeName, requests: Sequence[GenerateRequest]) -> None:
        """For these choices. Raises OverLimit."""
        if self._quota is None:
            return
        needs = {
            Kind.REQUESTS: 1,
            Kind.INPUT: sum(len(request.prompt) for request in requests[:: self._choices_per_prompt]),
            Kind.OUTPUT: sum(request.max_tokens for request in requests),
        }
        try:
            self._hold = await self._quota.take(self._visit.caller, mode, needs)
        except OverLimit as over:
            self._metrics.on_over_limit(mode, over.kind)
            raise

    def opened(self, mode: ModeName, requests: Sequence[GenerateRequest]) -> None:
        """These choices go into the engine loop."""
        if self._book is not None:
            self._book.opened(self._entry(mode), [request.id for request in requests])

    async def withdrawn(self, requests: Sequence[GenerateRequest]) -> None:
        """They found no place: everything is given back."""
        if self._book is not None:
            self._book.withdrawn([request.id for request in requests])
        await self._settle({Kind.REQUESTS: 0, Kind.INPUT: 0, Kind.OUTPUT: 0})

    def served(self, mode: ModeName) -> None:
        """All choices are in the loop."""
        self._visit.served = mode
        assert self._visit.requested is not None, "a mode was asked for"
        self._metrics.on_served(self._visit.requested, mode)

    def refused(self, mode: ModeName) -> None:
        """mode: the last one tried."""
        if self._book is not None:
            self._book.refused(self._entry(mode))

    async def ended(self, num_output: int) -> None:
        """Nothing of it runs any more; so many tokens came out."""
        await self._settle({Kind.OUTPUT: num_output})

    async def _settle(self, used: Mapping[Kind, int]) -> None:
        hold, self._hold = self._hold, None
        if hold is not None and self._quota is not None:
            await self._quota.settle(hold, used)

    def _entry(self, mode: ModeName) -> Entry:
        assert self._visit.requested is not None, "a mode was asked for"
        return Entry(*self._facts, self._visit.requested, mode, self._choices_per_prompt)
