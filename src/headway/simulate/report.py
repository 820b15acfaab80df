"""A simulation's figures for people."""

from __future__ import annotations

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.compare.report import UNKNOWN, milliseconds, rate, share, times
from headway.compare.stats import percentile, ratio
from headway.modes import SPEEDS, ModeName
from headway.simulate.result import ON_TIME, SimulationResult


def print_report(result: SimulationResult, about: list[str], console: Console) -> None:
    """The table, what holds for all modes, and the lines of `about`."""
    lines = [
        f"Tokens/s in all: {rate(result.total_tokens_per_second)}; engine busy: {share(result.busy_share)}; "
        f"{result.requests:,} requests in {_duration(result.seconds)} of simulated time, {result.steps:,} steps",
        *_losses(result),
        *about,
    ]
    console.print(Group(_table(result), *(Text(line) for line in lines)))


def _table(result: SimulationResult) -> Table:
    """A column for each mode: there are more figures than a terminal has room for side by side."""
    table = Table()
    table.add_column("")
    for name in SPEEDS:
        table.add_column(name.value, justify="right")
    columns = [_figures(result, name) for name in SPEEDS]
    for what in columns[0]:
        table.add_row(what, *(column[what] for column in columns))
    return table


def _figures(result: SimulationResult, name: ModeName) -> dict[str, str]:
    r = result[name]
    goodput = result.goodput(name)
    return {
        "requests served": f"{r.served:,}",
        "tokens/s per user": rate(r.tokens_per_second),
        "speed": times(result.speed_x(name)),
        "TTFT p50": _time(percentile(r.ttft, 50)),
        "TTFT p99": _time(percentile(r.ttft, 99)),
        "TPOT p50": _time(percentile(r.tpot, 50)),
        "TPOT p99": _time(percentile(r.tpot, 99)),
        "tokens on time": share(r.attainment, digits=1),
        f"requests {ON_TIME:.0%} on time": share(ratio(r.kept, r.served), digits=1),
        "goodput": UNKNOWN if goodput is None else f"{goodput:.2f}/s",
        "cost": times(result.cost_x(name)),
    }


def _losses(result: SimulationResult) -> list[str]:
    """What became of those who were not served as they asked."""
    lines = []
    for name in SPEEDS:
        r = result[name]
        fates = {"served at standard": r.downgraded, "refused": r.refused, "longer than the KV cache": r.too_long}
        told = [f"{number:,} {fate} ({number / r.asked:.1%})" for fate, number in fates.items() if number]
        if told:
            lines.append(f"Of {r.asked:,} requests for {name.value}: {', '.join(told)}")
    if result.evicted:
        lines.append(f"Rows that had to give their KV blocks back: {result.evicted:,}")
    return lines


def _time(seconds: float | None) -> str:
    return milliseconds(seconds) if seconds is None or seconds < 10 else f"{seconds:,.0f} s"


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
