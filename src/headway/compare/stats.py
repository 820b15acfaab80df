"""Figures from records. Pure functions: seconds and tokens in, seconds, tokens/s and shares out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from headway.compare.record import RequestRecord


@dataclass(frozen=True, slots=True)
class Window:
    """A measured stretch of time: start <= t < end, in seconds of the records' clock."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def __contains__(self, time: float | None) -> bool:
        return time is not None and self.start <= time < self.end


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The value below which `percent` of the values lie, interpolated between neighbours (Hyndman and Fan's type 7, numpy's
    default). None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median_or_none(values: Iterable[float | None]) -> float | None:
    """The median of the values that are known."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def ratio(value: float | None, base: float | None) -> float | None:
    """value / base, None where either is unknown or the base is 0."""
    return value / base if value is not None and base else None


def itl(record: RequestRecord) -> list[float]:
    """Inter-token latency as raw gaps: seconds between neighbouring chunks with content (a chunk may carry several tokens)."""
    times = record.chunk_times
    return [later - earlier for earlier, later in pairwise(times)]


def tokens_per_chunk(records: Iterable[RequestRecord]) -> float | None:
    """Mean tokens in a chunk with content, over the requests whose count is known. None if there is no such request."""
    tokens = chunks = 0
    for record in records:
        if record.output_tokens is not None and record.chunk_times:
            tokens += record.output_tokens
            chunks += len(record.chunk_times)
    return tokens / chunks if chunks else None


def tokens_in(records: Sequence[RequestRecord], window: Window) -> float | None:
    """Output tokens that arrived inside the window, those of unfinished and failed requests included.

    A request's tokens are spread evenly over its chunks. A request that never got to its usage counts with the other
    requests' mean tokens per chunk; if no request's count is known, the sum is unknown (None).
    """
    typical = tokens_per_chunk(records)
    if typical is None:
        return None
    total = 0.0
    for record in records:
        times = record.chunk_times
        inside = bisect_left(times, window.end) - bisect_left(times, window.start)
        if inside:
            each = typical if record.output_tokens is None else record.output_tokens / len(times)
            total += inside * each
    return total


def total_tokens_per_second(records: Sequence[RequestRecord], window: Window) -> float | None:
    """Output tokens/s of all requests together inside the window."""
    tokens = tokens_in(records, window)
    return None if tokens is None or window.seconds <= 0 else tokens / window.seconds


def peak_tokens_per_second(records: Sequence[RequestRecord], window: Window) -> float | None:
    """The best of the window's equal parts of about a second. Never below `total_tokens_per_second`: the parts tile it."""
    parts = max(1, int(window.seconds))
    width = window.seconds / parts
    edges = [window.start + i * width for i in range(parts)] + [window.end]
    rates = [total_tokens_per_second(records, Window(start, end)) for start, end in pairwise(edges)]
    return max((rate for rate in rates if rate is not None), default=None)


def within(records: Iterable[RequestRecord], windows: Sequence[Window]) -> list[RequestRecord]:
    """The finished requests that belong to one of the windows: a success by the middle of its output (so each belongs to one
    window at most, the one that holds most of it), a failure by its end. Those cut off belong to none."""

    def time_of(record: RequestRecord) -> float | None:
        if record.outcome == "cut":
            return None
        return record.middle if record.succeeded and record.chunk_times else record.finished

    return [record for record in records if any(time_of(record) in window for window in windows)]


@dataclass(frozen=True, slots=True)
class Summary:
    """Requests of one mode, summed up. Latencies in seconds and rates come from successes alone; None where unknown.

    requests: successes and failures; errors: failures; error_rate: their share. tokens_per_second: median per user.
    output_tokens: of the successes. attainment: the share of tokens on time, by the server's word, weighted by tokens.
    engine_seconds_per_token: device seconds charged over output tokens, for the requests where both are known.
    """

    requests: int
    errors: int
    error_rate: float | None
    output_tokens: int | None
    tokens_per_second: float | None
    ttft_p50: float | None
    ttft_p99: float | None
    tpot_p50: float | None
    tpot_p99: float | None
    itl_p50: float | None
    itl_p99: float | None
    attainment: float | None
    engine_seconds_per_token: float | None
    reasons: tuple[str, ...]


def summarize(records: Sequence[RequestRecord]) -> Summary:
    """Sum up finished requests (see `within`)."""
    good = [record for record in records if record.succeeded]
    bad = [record for record in records if record.outcome == "failure"]
    finished = len(good) + len(bad)
    ttfts = [record.ttft for record in good if record.ttft is not None]
    tpots = [record.tpot for record in good if record.tpot is not None]
    gaps = [gap for record in good for gap in itl(record)]
    counts = [record.output_tokens for record in good if record.output_tokens is not None]
    return Summary(
        requests=finished,
        errors=len(bad),
        error_rate=len(bad) / finished if finished else None,
        output_tokens=sum(counts) if counts else None,
        tokens_per_second=median_or_none(record.tokens_per_second for record in good),
        ttft_p50=percentile(ttfts, 50),
        ttft_p99=percentile(ttfts, 99),
        tpot_p50=percentile(tpots, 50),
        tpot_p99=percentile(tpots, 99),
        itl_p50=percentile(gaps, 50),
        itl_p99=percentile(gaps, 99),
        attainment=_attainment(good),
        engine_seconds_per_token=_engine_seconds_per_token(good),
        reasons=tuple(sorted({record.reason for record in bad if record.reason})),
    )


def _attainment(records: Iterable[RequestRecord]) -> float | None:
    on_time = tokens = 0.0
    for record in records:
        served = record.served_by
        if served is not None and served.attainment is not None and record.output_tokens:
            on_time += served.attainment * record.output_tokens
            tokens += record.output_tokens
    return on_time / tokens if tokens else None


def _engine_seconds_per_token(records: Iterable[RequestRecord]) -> float | None:
    seconds = tokens = 0.0
    for record in records:
        served = record.served_by
        if served is not None and served.engine_seconds is not None and record.output_tokens:
            seconds += served.engine_seconds
            tokens += record.output_tokens
    return seconds / tokens if tokens else None
