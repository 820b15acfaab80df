"""Targets measured side by side: the speed of each, in turn."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headway.compare.progress import Reporter, Silent
from headway.compare.prompts import numbered
from headway.compare.record import RequestRecord
from headway.compare.run import LOAD_TEMPERATURE
from headway.compare.speed.figures import PointFigures, point_figures
from headway.compare.speed.journal import Journal, relative
from headway.compare.speed.plan import STREAMS, Limits, Point
from headway.compare.speed.run import PointRun, Work, run_work
from headway.compare.stats import Window
from headway.compare.target import Ask
from headway.compare.targets.endpoint import EndpointTarget
from headway.compare.targets.prices import cost
from headway.errors import HeadwayError

ROUNDS = 2
GRACE_SECONDS = 120.0
MAX_TOKENS = 128


@dataclass(frozen=True, slots=True)
class TargetSpeed:
    """records: their times count on through the target's rounds. failure: why it couldn't be measured at all; None if it
    could. spent: in the price's currency, for the requests that succeeded. as_asked: how many of these the API says it served
    at the tier or speed that was asked for; None where it doesn't say, or none was."""

    target: EndpointTarget
    records: tuple[RequestRecord, ...]
    figures: PointFigures
    failure: str | None
    spent: float | None
    as_asked: int | None


async def measure_targets(
    targets: Sequence[EndpointTarget],
    *,
    streams: int,
    seconds: float,
    max_tokens: int = MAX_TOKENS,
    reporter: Reporter | None = None,
    journal: Journal | None = None,
    interrupted: asyncio.Event | None = None,
) -> list[TargetSpeed]:
    """Each target's speed under `streams` streams of the same kind of prompts, in ROUNDS turns, because the speed of machines
    and of the internet drifts. seconds: of measuring in all. One that can't be measured doesn't keep the others from it.
    Raises HeadwayError if none can. After an interrupt, what there is."""
    reporter, journal = reporter or Silent(), journal or Journal(None, {})
    interrupted = interrupted or asyncio.Event()
    failures = {target.label: await _failure(target, reporter) for target in targets}
    fit = [target for target in targets if failures[target.label] is None]
    if not fit:
        raise HeadwayError(str(failures[targets[0].label]))
    each = seconds / (ROUNDS * len(fit))
    reporter.plan(seconds)
    runs: dict[str, list[PointRun]] = {target.label: [] for target in targets}
    for turn, (place, target) in itertools.product(range(ROUNDS), enumerate(targets)):
        if target not in fit or interrupted.is_set():
            continue
        key = turn * len(targets) + place
        reporter.phase(f"{target.label} ({turn + 1} of {ROUNDS})")
        limits = Limits(seconds=each, grace=GRACE_SECONDS)
        work = Work(key, Point(STREAMS, streams), limits, target, partial(_asks, key, max_tokens))
        runs[target.label].append(await run_work(work, journal, interrupted, _Advance(reporter)))
    return [_speed(target, runs[target.label], failures[target.label]) for target in targets]


class _Advance:
    """A Progress that tells a Reporter."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._told = 0.0

    def __call__(self, point: Point, ended: int, seconds: float) -> None:
        self._reporter.advance(seconds - self._told)
        self._told = seconds


def _asks(key: int, max_tokens: int) -> Iterator[tuple[float, Ask]]:
    """Without end, all at once."""
    for prompt in numbered(f"Part {key + 1}, task"):
        yield 0.0, Ask([{"role": "user", "content": prompt}], max_tokens, LOAD_TEMPERATURE)


async def _failure(target: EndpointTarget, reporter: Reporter) -> str | None:
    reporter.phase(f"trying {target.label}")
    try:
        await target.probe()
    except HeadwayError as error:
        return str(error)
    return None


def _speed(target: EndpointTarget, runs: Sequence[PointRun], failure: str | None) -> TargetSpeed:
    records, windows = _joined(runs)
    good = [record for record in records if record.succeeded]
    said = [target.served_as_asked(record) for record in good]
    return TargetSpeed(
        target,
        tuple(records),
        point_figures(records, windows),
        failure,
        None if target.price is None else cost(target.price, good),
        None if not said or None in said else said.count(True),
    )


def _joined(runs: Sequence[PointRun]) -> tuple[list[RequestRecord], list[Window]]:
    """The rounds, one after the other on one line of time, each beginning when the last request of the one before had ended."""
    records, windows, begin = [], [], 0.0
    for run in runs:
        windows.append(Window(begin, begin + run.seconds))
        moved = [relative(replace(record, chunk_times=list(record.chunk_times)), -begin) for record in run.records]
        records += moved
        begin = max([windows[-1].end, *(record.finished for record in moved if record.finished is not None)])
    return records, windows
