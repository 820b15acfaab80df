"""`headway usage`: what was asked for, by whom, and what it took."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from headway.config import Settings
from headway.errors import HeadwayError, UsageError
from headway.ledger.database import check_url, default_url, open_database

if TYPE_CHECKING:
    from headway.ledger.usage import Usage

GROUPS = ("mode", "key", "day", "dialect")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def usage_command(settings: Settings, by: str, since: str | None, until: str | None, *, as_json: bool) -> None:
    """by: names of GROUPS, by comma. since, until: as read_time takes them. Raises HeadwayError."""
    groups = [word.strip() for word in by.split(",")]
    if unknown := next((word for word in groups if word not in GROUPS), None):
        raise UsageError(f"--by {unknown} is not known; it is any of {', '.join(GROUPS)}, joined by commas")
    now = datetime.now(UTC).replace(tzinfo=None)
    start = read_time("--since", since, now) if since is not None else None
    end = read_time("--until", until, now, end=True) if until is not None else None
    rows = _rows(settings.ledger.url or default_url(), groups, start, end)
    currency = settings.prices.currency
    if as_json:
        span = {"since": start and f"{start.isoformat()}Z", "until": end and f"{end.isoformat()}Z"}
        print(json.dumps({**span, "currency": currency, "rows": [_as_dict(groups, row) for row in rows]}, indent=2))
    elif rows:
        Console().print(_table(groups, rows, currency))
    else:
        print("no requests in this time")


def read_time(option: str, text: str, now: datetime, *, end: bool = False) -> datetime:
    """UTC without a zone, of "2026-11-30", "2026-11-30T12:00" (UTC, if it names no zone), or "7d": so long ago (m, h, d, w).
    end: a day counts to its end. Raises UsageError."""
    if found := re.fullmatch(r"(\d{1,6})([mhdw])", text.strip()):
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{option} {text} is no time; write 2026-11-30, 2026-11-30T12:00, or 7d for seven days ago") from None
    if when.tzinfo is not None:
        when = when.astimezone(UTC).replace(tzinfo=None)
    is_day = re.fullmatch(r"\d{4}-?\d\d-?\d\d", text.strip()) is not None
    return when + timedelta(days=1) if end and is_day else when


def _rows(url: str, groups: Sequence[str], start: datetime | None, end: datetime | None) -> list[Usage]:
    check_url(url)
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not file.is_file():
        raise HeadwayError(f"there is no ledger at {file} yet; `headway serve` begins one")
    from sqlalchemy.exc import SQLAlchemyError

    from headway.ledger.usage import usage

    try:
        engine = open_database(url)
        try:
            return usage(engine, groups, start, end)
        finally:
            engine.dispose()
    except SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        raise HeadwayError(f"the ledger can't be read: {reason}") from None


def _as_dict(groups: Sequence[str], row: Usage) -> dict[str, object]:
    figures = asdict(row)
    del figures["group"]
    return {**dict(zip(groups, row.group, strict=True)), **figures}


def _table(groups: Sequence[str], rows: Sequence[Usage], currency: str) -> Table:
    table = Table()
    for name in groups:
        table.add_column(name)
    figures = ["requests", "refused", "cancelled", "failed", "downgraded", "prompt", "cached", "output"]
    figures += ["TTFT", "TPOT", "attainment", "engine"]
    priced = any(row.price for row in rows)
    for name in [*figures, *([currency] if priced else [])]:
        table.add_column(name, justify="right")
    for row in rows:
        counts = (row.requests, row.refused, row.cancelled, row.error, row.downgraded)
        tokens = (row.prompt_tokens, row.cached_tokens, row.output_tokens)
        cells = [value or "-" for value in row.group] + [f"{count:,}" for count in (*counts, *tokens)]
        cells += [_milliseconds(row.ttft), _milliseconds(row.tpot)]
        cells += ["-" if row.attainment is None else f"{row.attainment:.1%}", f"{row.engine_seconds:,.1f} s"]
        table.add_row(*cells, *([f"{row.price:,.6f}"] if priced else []))
    return table


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"
