"""Sums over the ledger. (Imports SQLAlchemy.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Engine, case, func, select

from headway.ledger.prices import NANO
from headway.ledger.tables import requests

COLUMNS: dict[str, ColumnElement[Any]] = {
    "mode": requests.c.served_mode,
    "key": requests.c.key,
    "day": func.date(requests.c.time),
    "dialect": requests.c.dialect,
}
_OUTCOMES = ("refused", "cancelled", "error")


@dataclass(frozen=True, slots=True)
class Usage:
    """One group. group: its values, as asked for. requests: all, whatever became of them. ttft, tpot: means over requests, in
    seconds; attainment: over tokens; None where there was nothing to measure. price: in the currency."""

    group: tuple[str, ...]
    requests: int
    refused: int
    cancelled: int
    error: int
    downgraded: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    ttft: float | None
    tpot: float | None
    attainment: float | None
    engine_seconds: float
    price: float


def usage(engine: Engine, by: Sequence[str], since: datetime | None = None, until: datetime | None = None) -> list[Usage]:
    """Groups in order of their values. by: keys of COLUMNS. since, until: UTC without a zone; until is left out itself."""
    columns = requests.c
    group = [COLUMNS[name] for name in by]
    weight = case((columns.attainment.is_not(None), columns.output_tokens), else_=0)
    query = select(
        *group,
        func.count(),
        *(func.sum(case((columns.outcome == outcome, 1), else_=0)) for outcome in _OUTCOMES),
        func.sum(case((columns.requested_mode != columns.served_mode, 1), else_=0)),
        *(func.sum(columns[f"{kind}_tokens"]) for kind in ("prompt", "cached", "output", "drafted", "accepted")),
        func.avg(columns.ttft),
        func.avg(columns.tpot),
        func.sum(columns.attainment * weight) / func.nullif(func.sum(weight), 0),
        func.sum(columns.engine_seconds),
        func.sum(columns.price_nano),
    )
    if since is not None:
        query = query.where(columns.time >= since)
    if until is not None:
        query = query.where(columns.time < until)
    with engine.connect() as connection:
        rows = connection.execute(query.group_by(*group).order_by(*group)).all()
    return [_usage(row, len(group)) for row in rows if row[len(group)]]


def _usage(row: Any, width: int) -> Usage:
    figures: list[Any] = [int(value) for value in row[width : width + 10]]
    figures += [None if value is None else float(value) for value in row[width + 10 : width + 13]]
    seconds, nano = row[width + 13 :]
    figures += [float(seconds), int(nano) / NANO]
    return Usage(tuple(str(value) for value in row[:width]), *figures)
