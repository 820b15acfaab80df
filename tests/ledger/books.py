"""Entries and endings for the tests of the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.config import PricesSettings
from headway.ledger.book import Book
from headway.ledger.database import open_database
from headway.ledger.entry import Entry
from headway.ledger.prices import Prices
from headway.ledger.usage import Usage as Group
from headway.ledger.usage import usage as sums
from headway.ledger.writer import Writer
from headway.modes import ModeName
from headway.runtime.api import Timing, Usage
from headway.scheduler.lookup import DraftSource
from headway.scheduler.request import Request

AT = 1_795_996_800.0  # 2026-11-30, 00:00 UTC
FAST, STANDARD = ModeName.FAST, ModeName.STANDARD


def entry(name: str = "a", **fields: Any) -> Entry:
    facts: dict[str, Any] = {
        "id": name,
        "time": AT,
        "key": "alice",
        "dialect": "openai",
        "endpoint": "/v1/chat/completions",
        "model": "m",
        "requested": STANDARD,
        "served": STANDARD,
    }
    return Entry(**{**facts, **fields})


def end(
    book: Book,
    request_id: str,
    outcome: str = "stop",
    *,
    prompt: int = 10,
    output: int = 5,
    ttft: float | None = 0.5,
    **more: Any,
) -> None:
    request = Request(request_id, STANDARD, 20.0, 100.0, 0.0, [1] * prompt, 64)
    request.first_token_at = None if ttft is None else 100.0 + ttft
    for name in ("drafted", "accepted"):
        if f"{name}_tokens" in more:
            more[name] = {DraftSource.OWN_TEXT: more.pop(f"{name}_tokens")}
    given = {"cached_tokens": 4, "engine_seconds": 0.25, "attainment": 0.75, "pace": 20.0, **more}
    book.ended(request, outcome, Usage(prompt, output, **given), Timing(0.1, 0.4, 1.0, 1.5))


def write(book: Book, name: str = "a", outcome: str = "stop", *, facts: dict[str, Any] | None = None, **fields: Any) -> None:
    """A request of one choice, from its start to its end."""
    book.opened(entry(name, **(facts or {})), [f"{name}-0"])
    end(book, f"{name}-0", outcome, **fields)


def book_at(url: str, prices: PricesSettings | None = None, **writer: Any) -> Book:
    return Book(Writer(url, **writer), Prices(prices or PricesSettings()))


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder / 'books' / 'ledger.db'}"


def rows(url: str) -> list[dict[str, Any]]:
    from headway.ledger.tables import requests

    engine = open_database(url)
    with engine.connect() as connection:
        found = [dict(row) for row in connection.execute(requests.select().order_by(requests.c.n)).mappings()]
    engine.dispose()
    return found


def groups(url: str, *by: str, **span: Any) -> list[Group]:
    engine = open_database(url)
    try:
        return sums(engine, by, **span)
    finally:
        engine.dispose()
