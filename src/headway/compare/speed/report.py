"""A load's figures for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.compare.report import UNKNOWN, milliseconds, rate, share
from headway.compare.speed.figures import Distribution, PointFigures
from headway.compare.speed.run import PointRun

Row = tuple[PointRun, PointFigures]


def print_load(rows: Sequence[Row], notes: Sequence[str], about: Sequence[str], console: Console) -> None:
    """One point: its distributions; several: a line for each."""
    tables = [_detailed(rows[0][1])] if len(rows) == 1 else [_swept(rows)] if rows else []
    lines = [*(_totals(rows[0][1]) if len(rows) == 1 else ()), *about, *map(as_note, notes)]
    console.print(Group(*tables, *map(Text, lines)))


def counted(requests: int) -> str:
    return "1 request was" if requests == 1 else f"{requests} requests were"


def as_note(text: str) -> str:
    return f"Note: {text[0].upper()}{text[1:]}"


def point_json(run: PointRun, figures: PointFigures) -> dict[str, Any]:
    load = {"kind": run.point.kind, "value": run.point.value}
    return {"load": load, "interrupted": not run.is_whole, **figures.json()}


def notes_of(rows: Sequence[Row]) -> list[str]:
    """What a reader must know so as not to be misled."""
    notes = []
    for run, f in rows:
        where = f"{run.point.label}: " if len(rows) > 1 else ""
        if not run.is_whole:
            notes.append(f"{where}interrupted after {f.seconds:.1f} s; the figures are of what was measured until then.")
        if f.failed:
            reason = next(iter(f.reasons))
            notes.append(
                f"{where}{f.failed} of {f.succeeded + f.failed} requests failed ({share(f.error_rate)}), most often: {reason}. "
                f"They are in no latency; tokens that they sent are in the total."
            )
        if f.unfinished:
            notes.append(
                f"{where}{counted(f.unfinished)} cut off at the end, and neither succeeded nor failed; "
                "tokens inside the window are in the total."
            )
        if f.retried:
            notes.append(
                f"{where}{counted(f.retried)} refused and sent again; they waited {f.waited:.1f} s, "
                "which is part of their latencies."
            )
        if f.succeeded and f.output_tokens is None:
            notes.append(
                f"{where}the endpoint sends no usage, so its tokens are unknown: chunks are not tokens. "
                "A tokenizer can count them (--tokenizer)."
            )
        if f.late is not None and f.late > 0.1 * max(f.ttft.mean if f.ttft else 0.0, 0.1):
            notes.append(
                f"{where}requests were sent up to {milliseconds(f.late)} late, because this machine was too busy; latencies "
                "count from when they should have been sent."
            )
    return notes


def _totals(f: PointFigures) -> list[str]:
    lines = [
        f"Requests: {f.sent} sent in {f.seconds:.1f} s, {f.succeeded} succeeded, {f.failed} failed ({share(f.error_rate)})"
        + (f", {f.unfinished} unfinished" if f.unfinished else ""),
        f"In all: {rate(f.output_tokens_per_second)} output tokens/s (peak {rate(f.peak_tokens_per_second)}), "
        f"{_plain(f.requests_per_second)} requests/s",
        f"Tokens a request: {_mean(f.prompt_tokens)} in"
        + (f" ({f.cached_tokens} in all from a cache)" if f.cached_tokens else "")
        + f", {_mean(f.output_tokens)} out",
    ]
    if f.good is not None:
        lines.append(f"Goodput: {_plain(f.goodput)} requests/s ({f.good} of {f.succeeded + f.failed} met all objectives)")
    return lines


def _detailed(f: PointFigures) -> Table:
    table = Table()
    table.add_column("")
    named = {
        "TTFT (ms)": (f.ttft, 1000),
        "TPOT (ms)": (f.tpot, 1000),
        "ITL (ms)": (f.itl, 1000),
        "end to end (ms)": (f.e2e, 1000),
        "tokens/s per user": (f.tokens_per_second, 1),
    }
    percents = next((list(values.percentiles) for values, _ in named.values() if values), [])
    for heading in ("mean", *(f"p{percent:g}" for percent in percents), "max"):
        table.add_column(heading, justify="right")
    for name, (values, factor) in named.items():
        figures = [values.mean, *values.percentiles.values(), values.most] if values else [None] * (len(percents) + 2)
        table.add_row(name, *(UNKNOWN if value is None else number(value * factor) for value in figures))
    return table


def number(value: float | None) -> str:
    """Three digits at least."""
    return UNKNOWN if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _swept(rows: Sequence[Row]) -> Table:
    good = any(f.good is not None for _, f in rows)
    latencies = ["TTFT\np50 ms", "TTFT\np99 ms", "TPOT\np50 ms", "ITL\np99 ms"]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column(rows[0][0].point.heading)
    headings = ["tok/s\nuser", "tok/s\nin all", "req/s", *latencies, "errors"]
    for heading in headings + ["goodput\n/s"] * good:
        table.add_column(heading, justify="right", no_wrap=True)
    for run, f in rows:
        cells = [
            number(_at(f.tokens_per_second, 50)),
            number(f.output_tokens_per_second),
            _plain(f.requests_per_second),
            *(_ms(_at(values, percent)) for values, percent in ((f.ttft, 50), (f.ttft, 99), (f.tpot, 50), (f.itl, 99))),
            f"{f.failed}/{f.succeeded + f.failed}",
        ]
        table.add_row(f"{run.point.value:g}", *cells, *([_plain(f.goodput)] if good else []))
    return table


def _at(values: Distribution | None, percent: float) -> float | None:
    return values.percentiles.get(percent) if values else None


def _ms(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else number(1000 * seconds)


def _plain(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _mean(values: Distribution | None) -> str:
    return "unknown" if values is None else f"{values.mean:.1f}"
