"""Answers summed up: for each target and suite, how many were right, and what a right one took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headway.compare.capability.asking import Column
from headway.compare.capability.bootstrap import Interval, per_right_interval, share_interval
from headway.compare.capability.chains import Survival, survival
from headway.compare.capability.outcome import Outcome
from headway.compare.stats import itl, median_or_none, percentile, ratio
from headway.compare.target import Price

ALL = "all"
"""The row of all suites together, a task being a task."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One target in one suite.

    right: for each task that was answered, in the order of the tasks; ids: theirs. failed: tasks that the API failed on; they
    are in no other figure. seconds, price, engine_seconds: means of an answered task, right or wrong; the last two are None if
    one of them is unknown. calls, valid_calls: of tools, see Verdict. levels: for each level, right ones and tasks.
    """

    ids: tuple[str, ...]
    right: tuple[bool, ...]
    failed: int
    reasons: tuple[str, ...]
    seconds: float | None
    price: float | None
    engine_seconds: float | None
    seconds_interval: Interval | None
    share_interval: Interval | None
    calls: int
    valid_calls: int
    levels: tuple[tuple[int, int, int], ...]

    @property
    def share(self) -> float | None:
        """Of answered tasks, the right ones."""
        return sum(self.right) / len(self.right) if self.right else None

    @property
    def seconds_per_right(self) -> float | None:
        """Seconds of all answers over the number of right ones: what a right one takes if a wrong one is noticed at no cost,
        and asked again until it is right, each time with the same chance. None without a right one."""
        return ratio(self.seconds, self.share)

    @property
    def price_per_right(self) -> float | None:
        return ratio(self.price, self.share)

    @property
    def engine_seconds_per_right(self) -> float | None:
        return ratio(self.engine_seconds, self.share)

    @property
    def validity(self) -> float | None:
        """Of calls, those that could be carried out."""
        return ratio(float(self.valid_calls), float(self.calls))


@dataclass(frozen=True, slots=True)
class Speed:
    """Of all answers of a target. Seconds, and tokens per second per user; None where unknown. itl_times: seconds since the
    answer's first chunk, and the gap before each later chunk."""

    ttft: float | None
    tpot: float | None
    itl_p99: float | None
    tokens_per_second: float | None
    output_tokens: int | None
    cached_share: float | None
    itl_times: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """cells: by suite, and ALL. gave_up, streams, house: see Column."""

    label: str
    price: Price | None
    cells: dict[str, Cell]
    speed: Speed
    chain: Survival | None
    gave_up: str | None
    streams: int
    house: int


def figures_of(column: Column, suites: Sequence[str]) -> TargetFigures:
    """Of a column whose outcomes are judged."""
    target, outcomes = column.target, column.outcomes
    cells = {suite: cell([o for o in outcomes if o.suite == suite], target.price) for suite in suites}
    cells[ALL] = cell(outcomes, target.price)
    verdicts = [outcome.verdict for outcome in outcomes if outcome.verdict is not None]
    chain = survival(verdicts)
    return TargetFigures(
        target.label, target.price, cells, _speed(outcomes), chain, column.gave_up, column.streams, column.house
    )


def cell(outcomes: Sequence[Outcome], price: Price | None) -> Cell:
    """The figures of these outcomes."""
    good = [(outcome, outcome.verdict) for outcome in outcomes if outcome.verdict is not None]
    right = tuple(verdict.correct for _, verdict in good)
    seconds = [outcome.seconds for outcome, _ in good]
    levels = sorted({outcome.task.level for outcome, _ in good})
    return Cell(
        ids=tuple(outcome.task.id for outcome, _ in good),
        right=right,
        failed=len(outcomes) - len(good),
        reasons=tuple(reason for reason, _ in Counter(o.failure for o in outcomes if o.failure).most_common(3)),
        seconds=_mean(seconds),
        price=_mean([outcome.price(price) for outcome, _ in good]),
        engine_seconds=_mean([outcome.engine_seconds for outcome, _ in good]),
        seconds_interval=per_right_interval(seconds, right),
        share_interval=share_interval(right),
        calls=sum(verdict.calls for _, verdict in good),
        valid_calls=sum(verdict.valid_calls for _, verdict in good),
        levels=tuple((n, sum(v.correct for o, v in good if o.task.level == n), _count(good, n)) for n in levels),
    )


def _count(good: Sequence[tuple[Outcome, object]], level: int) -> int:
    return sum(outcome.task.level == level for outcome, _ in good)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _speed(outcomes: Sequence[Outcome]) -> Speed:
    records = [answer.record for outcome in outcomes for answer in outcome.answers]
    counts = [record.output_tokens for record in records if record.output_tokens is not None]
    prompts = sum(record.prompt_tokens or 0 for record in records)
    gaps = [gap for record in records for gap in itl(record)]
    return Speed(
        ttft=median_or_none(record.ttft for record in records),
        tpot=median_or_none(record.tpot for record in records),
        itl_p99=percentile(gaps, 99),
        tokens_per_second=median_or_none(record.tokens_per_second for record in records),
        output_tokens=sum(counts) if counts else None,
        cached_share=sum(record.cached_tokens or 0 for record in records) / prompts if prompts else None,
        itl_times=tuple(
            (later - record.chunk_times[0], gap)
            for record in records
            for later, gap in zip(record.chunk_times[1:], itl(record), strict=True)
        ),
    )
