"""Capability for people: tables and the lines below them."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.compare.capability.bootstrap import Interval
from headway.compare.capability.chains import LENGTHS, speed_needed, survives
from headway.compare.capability.figures import ALL, Cell, TargetFigures
from headway.compare.capability.result import CapabilityResult
from headway.compare.machine import describe
from headway.compare.report import UNKNOWN, milliseconds, rate, share

MILLI = 1000


def print_capability(result: CapabilityResult, console: Console) -> None:
    """The tables, the advice and the notes."""
    parts: list[RenderableType] = [_cells(result), _speeds(result)]
    if any(target.chain is not None for target in result.targets):
        parts.append(_chains(result))
    lines = [Text(f"{advice.suite}: {advice.words}") for advice in result.advice]
    notes = [Text(f"Note: {note}") for note in result.notes]
    about = Text(f"Seed {result.seed}, {sum(result.tasks.values())} tasks for each target. {describe(result.machine)}")
    console.print(Group(*parts, Text("What to take", style="bold"), *lines, Text(""), about, *notes))


def price_heading(result: CapabilityResult) -> str:
    return f"{result.currency}/1000 right" if result.has_prices else "device s/right"


def price_cell(result: CapabilityResult, cell: Cell) -> str:
    """Price of a thousand right answers, or device seconds of one."""
    value = cell.price_per_right if result.has_prices else cell.engine_seconds_per_right
    if value is None:
        return UNKNOWN
    return f"{value * MILLI:.3g}" if result.has_prices else f"{value:.3g}"


def interval(ends: Interval | None) -> str:
    return UNKNOWN if ends is None else f"{100 * ends[0]:.0f}-{ends[1]:.0%}"


def seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _cells(result: CapabilityResult) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("suite", no_wrap=True)
    table.add_column("target", overflow="fold", min_width=8)
    cost = price_heading(result).replace("/", "/\n")
    for heading in ("right", "95%", "s/\nanswer", "s/\nright", cost, "valid\ncalls", "API\nfailed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for suite in (*result.suites, ALL):
        for place, target in enumerate(result.targets):
            cell = target.cells[suite]
            table.add_row(
                suite if place == 0 else "",
                target.label,
                f"{sum(cell.right)}/{len(cell.right)}",
                interval(cell.share_interval),
                seconds(cell.seconds),
                seconds(cell.seconds_per_right),
                price_cell(result, cell),
                UNKNOWN if not cell.calls else f"{cell.valid_calls}/{cell.calls}",
                str(cell.failed) if cell.failed else "",
                end_section=target is result.targets[-1],
            )
    return table


def _speeds(result: CapabilityResult) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("target", overflow="fold", min_width=8)
    for heading in ("tok/s user", "TTFT p50", "TPOT p50", "ITL p99", "asked"):
        table.add_column(heading, justify="right", no_wrap=True)
    for target in result.targets:
        speed = target.speed
        times = [milliseconds(value) for value in (speed.ttft, speed.tpot, speed.itl_p99)]
        table.add_row(target.label, rate(speed.tokens_per_second), *times, asked(target))
    return table


def asked(target: TargetFigures) -> str:
    """How it was asked, in words."""
    beside = f" beside {target.house} standard" if target.house else ""
    return f"{target.streams} at once{beside}"


def _chains(result: CapabilityResult) -> Table:
    table = Table(title="chains of so many steps survived", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("target", overflow="fold", min_width=8)
    for heading in ("mistakes", "95%", *(f"{steps}" for steps in LENGTHS), f"speed\nfor {LENGTHS[-2]}"):
        table.add_column(heading, justify="right", no_wrap=True)
    best = result.reference
    for target in result.targets:
        chain = target.chain
        if chain is None or chain.mistake_rate is None:
            continue
        p = chain.mistake_rate
        needed = speed_needed(p, best.chain.mistake_rate or 0.0, LENGTHS[-2]) if best and best.chain else None
        survived = [share(survives(p, steps)) for steps in LENGTHS]
        table.add_row(
            target.label, share(p), interval(chain.interval), *survived, "no speed" if needed is None else f"{needed:.3g}x"
        )
    return table
