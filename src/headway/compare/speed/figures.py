"""The figures of one point of load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from headway.compare.record import RequestRecord
from headway.compare.result import rounded
from headway.compare.speed.goodput import Objective, is_good
from headway.compare.stats import (
    Window,
    itl,
    peak_tokens_per_second,
    percentile,
    ratio,
    tokens_per_chunk,
    total_tokens_per_second,
)

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of values in one unit. std: of the population."""

    count: int
    mean: float
    std: float
    least: float
    most: float
    percentiles: dict[float, float]

    @classmethod
    def of(cls, values: Iterable[float | None], percents: Sequence[float] = PERCENTILES) -> Distribution | None:
        """Of the values that are known; None without any."""
        known = sorted(value for value in values if value is not None)
        if not known:
            return None
        places = {percent: percentile(known, percent) or 0.0 for percent in percents}
        return cls(len(known), fmean(known), pstdev(known), known[0], known[-1], places)

    def json(self, factor: float = 1.0) -> dict[str, float | int | None]:
        named = {f"p{percent:g}": rounded(value * factor) for percent, value in self.percentiles.items()}
        ends = {"min": self.least, "max": self.most, "mean": self.mean, "std": self.std}
        return {"count": self.count, **{name: rounded(value * factor) for name, value in ends.items()}, **named}


@dataclass(frozen=True, slots=True)
class PointFigures:
    """Latencies in seconds, and rates, come from successes alone; None where unknown.

    seconds: of the window. sent = succeeded + failed + unfinished, where refused ones (HTTP 429) are part of the failed, and
    unfinished are those that were cut off at the end. retried: requests that were refused and sent again; waited: seconds that
    they waited for it, together. late: how long after its time the last of all was sent, in an open loop.
    output_tokens_per_second: of all requests inside the window, failed and unfinished ones included. good: requests that met
    all objectives (None without any).
    """

    seconds: float
    sent: int
    succeeded: int
    failed: int
    refused: int
    unfinished: int
    retried: int
    waited: float
    late: float | None
    reasons: dict[str, int]
    ttft: Distribution | None
    tpot: Distribution | None
    itl: Distribution | None
    e2e: Distribution | None
    tokens_per_second: Distribution | None
    prompt_tokens: Distribution | None
    output_tokens: Distribution | None
    cached_tokens: int | None
    tokens_per_chunk: float | None
    output_tokens_per_second: float | None
    peak_tokens_per_second: float | None
    good: int | None

    @property
    def error_rate(self) -> float | None:
        return ratio(self.failed, self.succeeded + self.failed)

    @property
    def requests_per_second(self) -> float | None:
        return ratio(self.succeeded, self.seconds)

    @property
    def goodput(self) -> float | None:
        """Requests per second that met all objectives."""
        return None if self.good is None else ratio(self.good, self.seconds)

    def json(self) -> dict[str, Any]:
        """Latencies in ms, rates per second."""
        latencies = {"ttft_ms": self.ttft, "tpot_ms": self.tpot, "itl_ms": self.itl, "e2e_ms": self.e2e}
        counts = {
            "tokens_per_second_per_user": self.tokens_per_second,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
        }
        return {
            "seconds": rounded(self.seconds),
            "requests": {
                "sent": self.sent,
                "succeeded": self.succeeded,
                "failed": self.failed,
                "refused": self.refused,
                "unfinished": self.unfinished,
                "retried": self.retried,
                "retry_wait_seconds": rounded(self.waited),
            },
            "error_rate": rounded(self.error_rate),
            "error_reasons": self.reasons,
            **{name: values.json(1000) if values else None for name, values in latencies.items()},
            **{name: values.json() if values else None for name, values in counts.items()},
            "cached_prompt_tokens": self.cached_tokens,
            "tokens_per_chunk": rounded(self.tokens_per_chunk),
            "requests_per_second": rounded(self.requests_per_second),
            "output_tokens_per_second": rounded(self.output_tokens_per_second),
            "peak_output_tokens_per_second": rounded(self.peak_tokens_per_second),
            "goodput_requests_per_second": rounded(self.goodput),
            "goodput_share": None if self.good is None else rounded(ratio(self.good, self.succeeded + self.failed)),
            "sent_late_ms": None if self.late is None else rounded(self.late * 1000),
        }


def point_figures(
    records: Sequence[RequestRecord],
    windows: Sequence[Window],
    *,
    objectives: Sequence[Objective] = (),
    percents: Sequence[float] = PERCENTILES,
    is_open: bool = False,
) -> PointFigures:
    """windows: when was measured, by the clock of the records' times; what came at other times (in the grace at a point's end)
    is in no total."""
    seconds = sum(window.seconds for window in windows)
    totals = [total_tokens_per_second(records, window) for window in windows]
    known = [total * window.seconds for total, window in zip(totals, windows, strict=True) if total is not None]
    peaks = [peak_tokens_per_second(records, window) for window in windows]
    good = [record for record in records if record.succeeded]
    bad = [record for record in records if record.outcome == "failure"]
    again = [record for record in records if record.retries]
    cached = [record.cached_tokens for record in good if record.cached_tokens is not None]
    late = [record.started - record.intended for record in records if not record.retries]
    return PointFigures(
        seconds=seconds,
        sent=len(records),
        succeeded=len(good),
        failed=len(bad),
        refused=sum(record.status == TOO_MANY for record in bad),
        unfinished=len(records) - len(good) - len(bad),
        retried=len(again),
        waited=sum(record.started - record.intended for record in again),
        late=max(late, default=0.0) if is_open else None,
        reasons=dict(Counter(record.reason or "unknown" for record in bad).most_common()),
        ttft=Distribution.of((record.ttft for record in good), percents),
        tpot=Distribution.of((record.tpot for record in good), percents),
        itl=Distribution.of((gap for record in good for gap in itl(record)), percents),
        e2e=Distribution.of((record.e2e for record in good), percents),
        tokens_per_second=Distribution.of((record.tokens_per_second for record in good), percents),
        prompt_tokens=Distribution.of((record.prompt_tokens for record in good), percents),
        output_tokens=Distribution.of((record.output_tokens for record in good), percents),
        cached_tokens=sum(cached) if cached else None,
        tokens_per_chunk=tokens_per_chunk(good),
        output_tokens_per_second=ratio(sum(known), seconds) if known else None,
        peak_tokens_per_second=max((peak for peak in peaks if peak is not None), default=None),
        good=sum(is_good(record, objectives) for record in good) if objectives else None,
    )
