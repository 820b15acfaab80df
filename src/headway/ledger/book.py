"""The ledger as the server sees it: requests are opened, refused, and ended by the engine loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from headway.config import LedgerSettings, PricesSettings
from headway.ledger.database import check_url, default_url
from headway.ledger.entry import Ended, Entry, Row, ended_row, refused_row
from headway.ledger.prices import Prices
from headway.ledger.writer import Writer
from headway.runtime.api import Timing, Usage
from headway.scheduler.request import Request


class Book:
    """One row for each HTTP request, when the last of its choices has left the engine loop (a RequestLog): that also happens
    when the client goes, the engine fails or the server stops. All of it runs in the writer's thread."""

    def __init__(self, writer: Writer, prices: Prices) -> None:
        self._writer = writer
        self._prices = prices
        self._open: dict[str, _Sheet] = {}

    @property
    def lost(self) -> int:
        """Rows that could not be written."""
        return self._writer.lost

    @property
    def waiting(self) -> int:
        """Rows that are yet to be written."""
        return self._writer.waiting

    @property
    def open(self) -> int:
        """Choices that have yet to end."""
        return len(self._open)

    def opened(self, entry: Entry, request_ids: Sequence[str]) -> None:
        """Before its choices, in this order, go into the engine loop."""
        self._writer.put(partial(self._opened, entry, list(request_ids)))

    def withdrawn(self, request_ids: Sequence[str]) -> None:
        """Not all of them found a place; what has become of the others doesn't count."""
        self._writer.put(partial(self._withdrawn, list(request_ids)))

    def refused(self, entry: Entry) -> None:
        self._writer.put(partial(refused_row, entry))

    def ended(self, request: Request, outcome: str, usage: Usage, timing: Timing) -> None:
        """Called in the engine's thread."""
        first = request.first_token_at
        choice = Ended(outcome, usage, None if first is None else first - request.arrival, timing.completion)
        self._writer.put(partial(self._ended, request.id, choice))

    def close(self) -> None:
        self._writer.close()

    # --- in the writer's thread ---------------------------------------------------------------------------------------------

    def _opened(self, entry: Entry, request_ids: list[str]) -> None:
        sheet = _Sheet(entry, request_ids)
        self._open |= dict.fromkeys(request_ids, sheet)

    def _withdrawn(self, request_ids: list[str]) -> None:
        for request_id in request_ids:
            self._open.pop(request_id, None)

    def _ended(self, request_id: str, choice: Ended) -> Row | None:
        sheet = self._open.pop(request_id, None)
        if sheet is None:
            return None
        sheet.choices[request_id] = choice
        if len(sheet.choices) < len(sheet.request_ids):
            return None
        return ended_row(sheet.entry, [sheet.choices[each] for each in sheet.request_ids], self._prices)


class _Sheet:
    """A request some of whose choices are still running."""

    def __init__(self, entry: Entry, request_ids: list[str]) -> None:
        self.entry = entry
        self.request_ids = request_ids
        self.choices: dict[str, Ended] = {}


def open_book(ledger: LedgerSettings, prices: PricesSettings) -> Book | None:
    """None if there is to be no ledger. Raises UsageError."""
    if not ledger.enabled:
        return None
    url = ledger.url or default_url()
    check_url(url)
    return Book(Writer(url), Prices(prices))
