"""A report as one HTML page that needs nothing else: no script, no font, no request. A policy on the page forbids them all."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from headway.compare.capability.advice import MARGIN, RELIABLE
from headway.compare.capability.chains import LENGTHS, speed_needed, survives
from headway.compare.capability.figures import ALL
from headway.compare.capability.report import asked, interval, price_cell, price_heading, seconds
from headway.compare.capability.result import CapabilityResult
from headway.compare.machine import describe
from headway.compare.page.plots import plots
from headway.compare.report import milliseconds, rate, share
from headway.errors import UsageError

COLOURS = 6


@dataclass(frozen=True, slots=True)
class _ChainRow:
    place: int
    label: str
    rate: str
    interval: str
    cells: list[str]


def write_page(result: CapabilityResult, path: Path) -> None:
    """Raises UsageError if the file can't be written."""
    try:
        path.write_text(page(result), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--report: {path} can't be written: {error.strerror or error}") from error


def page(result: CapabilityResult) -> str:
    """The page. Whatever comes from a model, a server or the command line is escaped."""
    here = files("headway.compare.page")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string((here / "page.html.jinja").read_text(encoding="utf-8"))
    environment.globals.update(
        share=share,
        interval=interval,
        seconds=seconds,
        price_cell=price_cell,
        rate=rate,
        milliseconds=milliseconds,
        asked=asked,
    )
    reference = result.reference
    return template.render(
        result=result,
        style=Markup((here / "style.css").read_text(encoding="utf-8") + _colours(len(result.targets))),
        machine=describe(result.machine),
        tasks=sum(result.tasks.values()),
        plots=plots(result),
        suites=(*result.suites, ALL),
        price_heading=price_heading(result),
        chains=_chains(result),
        lengths=LENGTHS,
        reference=reference.label if reference is not None else "",
        houses=any(target.house for target in result.targets),
        reliable=share(RELIABLE),
        margin=f"{100 * MARGIN:.0f}",
    )


def _colours(targets: int) -> str:
    """A class for each target's marks, words and dots; colours come again after COLOURS of them (lines have dashes, too)."""
    rules = []
    for place in range(targets):
        colour = f"var(--c{place % COLOURS})"
        rules.append(f".c{place} {{ stroke: {colour}; }} .mark.c{place} {{ fill: {colour}; }} .t{place} {{ color: {colour}; }}")
        rules.append(f".name.t{place} {{ fill: {colour}; }} .b{place} {{ background: {colour}; print-color-adjust: exact; }}")
    return "\n".join(rules)


def _chains(result: CapabilityResult) -> list[_ChainRow]:
    best = result.reference
    lowest = best.chain.mistake_rate if best is not None and best.chain is not None else None
    rows = []
    for place, target in enumerate(result.targets):
        chain = target.chain
        if chain is None or chain.mistake_rate is None or lowest is None:
            continue
        cells = []
        for steps in LENGTHS:
            needed = speed_needed(chain.mistake_rate, lowest, steps)
            times = "no speed" if needed is None else f"{needed:.3g}x"
            cells.append(f"{share(survives(chain.mistake_rate, steps))} ({times})")
        rows.append(_ChainRow(place, target.label, share(chain.mistake_rate), interval(chain.interval), cells))
    return rows
