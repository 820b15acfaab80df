"""Targets side by side, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.compare.machine import describe, machine_facts, versions
from headway.compare.measure import MAX_TOKENS, ROUNDS, TargetSpeed
from headway.compare.report import UNKNOWN
from headway.compare.result import rounded
from headway.compare.run import LOAD_TEMPERATURE
from headway.compare.speed.figures import Distribution
from headway.compare.speed.report import counted, number
from headway.compare.stats import ratio
from headway.compare.target import Price
from headway.modes import ModeName

MILLION = 1_000_000


def print_targets(speeds: Sequence[TargetSpeed], currency: str, streams: int, console: Console) -> None:
    """The table and the lines below it."""
    lines = [
        f"Load: {streams} stream{'s' * (streams > 1)} on each target, in {ROUNDS} turns; answers of up to {MAX_TOKENS} tokens",
        f"Machine: {describe(machine_facts())}",
        *(f"Note: {note}" for note in notes_of(speeds)),
    ]
    console.print(Group(_table(speeds, currency), *map(Text, lines)))


def targets_json(speeds: Sequence[TargetSpeed], currency: str, command: str, streams: int, interrupted: bool) -> dict[str, Any]:
    return {
        "machine": machine_facts(),
        "versions": versions(("headway",)),
        "command": command,
        "load": {"streams": streams, "rounds": ROUNDS, "max_tokens": MAX_TOKENS, "temperature": LOAD_TEMPERATURE},
        "currency": currency,
        "interrupted": interrupted,
        "targets": {speed.target.label: _json(speed) for speed in speeds},
        "notes": notes_of(speeds),
    }


def notes_of(speeds: Sequence[TargetSpeed]) -> list[str]:
    """What a reader must know so as not to be misled."""
    notes = []
    for speed in speeds:
        label, f = speed.target.label, speed.figures
        if speed.failure is not None:
            notes.append(f"not measured: {speed.failure}")
            continue
        if f.failed:
            ended = f.succeeded + f.failed
            notes.append(f"{label}: {f.failed} of {ended} requests failed, most often: {next(iter(f.reasons))}")
        if f.retried:
            notes.append(
                f"{label}: {counted(f.retried)} refused and sent again when the endpoint wanted it; "
                f"they waited {f.waited:.1f} s, which is part of their latencies"
            )
        if f.unfinished:
            notes.append(f"{label}: {counted(f.unfinished)} cut off before the end, and in no latency")
        if f.succeeded and f.output_tokens is None:
            notes.append(f"{label}: sends no usage, so its tokens are unknown: chunks are not tokens")
        if speed.as_asked is not None and speed.as_asked < f.succeeded:
            notes.append(f"{label}: {speed.as_asked} of {f.succeeded} requests were served as asked, by the endpoint's word")
        if left := sorted(speed.target.left_out & {"temperature", "stream_options"}):
            notes.append(f"{label}: refused {' and '.join(left)}, so requests went without")
    if any(speed.target.label in set(ModeName) for speed in speeds):
        notes.append("each mode had the server to itself; `headway compare` without targets measures them beside a full house")
    return notes


def _table(speeds: Sequence[TargetSpeed], currency: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("target", overflow="fold")
    latencies = ["TTFT\np50 ms", "TTFT\np99 ms", "TPOT\np50 ms", "ITL\np99 ms"]
    for heading in ["tok/s\nuser", *latencies, "tok/s\nin all", f"{currency}/M\nin, out", "errors"]:
        table.add_column(heading, justify="right", no_wrap=True)
    for speed in speeds:
        f = speed.figures
        latency = [(f.ttft, 50), (f.ttft, 99), (f.tpot, 50), (f.itl, 99)]
        table.add_row(
            speed.target.label,
            number(_at(f.tokens_per_second, 50)),
            *(_ms(_at(values, percent)) for values, percent in latency),
            number(f.output_tokens_per_second),
            _price(speed.target.price),
            f"{f.failed}/{f.succeeded + f.failed}" if f.sent else UNKNOWN,
        )
    return table


def _json(speed: TargetSpeed) -> dict[str, Any]:
    price, f = speed.target.price, speed.figures
    tokens = f.output_tokens.mean * f.output_tokens.count if f.output_tokens else None
    per_million = ratio(speed.spent, tokens)
    return {
        "model": speed.target.model,
        "asked_for": speed.target.variant,
        "failure": speed.failure,
        "price_per_million": None
        if price is None
        else {"input": price.input, "cached_input": price.cached, "output": price.output},
        "spent": None if speed.spent is None else round(speed.spent, 9),
        "spent_per_million_output_tokens": None if per_million is None else rounded(per_million * MILLION),
        "served_as_asked": speed.as_asked,
        "output_tokens_from": "usage" if f.output_tokens else None,
        **f.json(),
    }


def _price(price: Price | None) -> str:
    return UNKNOWN if price is None else f"{price.input:g}, {price.output:g}"


def _at(values: Distribution | None, percent: float) -> float | None:
    return values.percentiles.get(percent) if values else None


def _ms(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else number(1000 * seconds)
