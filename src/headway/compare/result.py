"""What a comparison found."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from headway.compare.same_text import SameText
from headway.compare.stats import Summary, median_or_none, ratio
from headway.modes import ModeName

Phase = Literal["alone", "with_fast"]
SPARK_PAIRS = 2
"""Windows of the spark alone, and as many of fast alone."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long what is measured, in seconds. The two phases alternate `pairs` times, because a machine's speed drifts; each
    window is preceded by `settle`, whose requests count for nothing."""

    streams: int
    window: float
    warm_up: float
    settle: float
    pairs: int
    max_tokens: int

    @classmethod
    def of(cls, streams: int, seconds: float, *, pairs: int = 3, max_tokens: int = 96) -> Schedule:
        """Spread `seconds` of measuring over the windows."""
        window = seconds / (2 * pairs)
        return cls(streams, window, min(6.0, window), min(2.0, window / 4), pairs, max_tokens)

    @property
    def total(self) -> float:
        """Seconds under load, the same-text test not included."""
        return self.warm_up + 2 * self.pairs * (self.settle + self.window)

    @property
    def of_spark(self) -> float:
        """Seconds that a spark takes besides."""
        return 2 * self.settle + self.window + SPARK_PAIRS * self.window


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One measured window. Tokens/s of all requests together; engine_busy: share of the window in which the engine
    computed. None where the server doesn't tell."""

    phase: Phase
    seconds: float
    total_tokens_per_second: float | None
    peak_tokens_per_second: float | None
    engine_busy: float | None


@dataclass(frozen=True, slots=True)
class SparkResult:
    """alone: one stream of the spark, with the device to itself; fast_alone: one stream of fast, likewise, in turn with it.
    shared: one stream of the spark beside all the standard ones, which are standard_beside."""

    model: str
    alone: Summary
    fast_alone: Summary
    shared: Summary
    standard_beside: Summary


@dataclass(frozen=True, slots=True)
class CompareResult:
    """standard: requests of the windows with the fast stream; fast: all of that stream; alone: the standard ones of the windows
    without it.
    spark: None if the server has none.
    fast_served: how many successful fast requests the server says it served as fast."""

    model: str
    schedule: Schedule
    alone: Summary
    standard: Summary
    fast: Summary
    fast_served: int
    windows: tuple[WindowResult, ...]
    same_text: SameText
    spark: SparkResult | None = None

    @property
    def modes(self) -> tuple[ModeName, ...]:
        return tuple(mode for mode in ModeName if mode is not ModeName.SPARK or self.spark is not None)

    def summary(self, mode: ModeName) -> Summary:
        """The spark's is that with the device to itself."""
        if mode is ModeName.SPARK:
            assert self.spark is not None
            return self.spark.alone
        return self.fast if mode is ModeName.FAST else self.standard

    def speed_x(self, mode: ModeName) -> float | None:
        """Tokens/s per user over standard's in the same windows."""
        return ratio(self.summary(mode).tokens_per_second, self.standard.tokens_per_second)

    def cost_x(self, mode: ModeName) -> float | None:
        """Device seconds per output token over standard's in the same windows."""
        return ratio(self.summary(mode).engine_seconds_per_token, self.standard.engine_seconds_per_token)

    def total_tokens_per_second(self, phase: Phase) -> float | None:
        """The median of the phase's windows."""
        return median_or_none(window.total_tokens_per_second for window in self.windows if window.phase == phase)

    def engine_busy(self, phase: Phase) -> float | None:
        """The median of the phase's windows."""
        return median_or_none(window.engine_busy for window in self.windows if window.phase == phase)

    def share_kept(self) -> float | None:
        """Tokens/s in all with the fast stream over those without it."""
        return ratio(self.total_tokens_per_second("with_fast"), self.total_tokens_per_second("alone"))

    def notes(self) -> list[str]:
        """What a reader must know so as not to be misled."""
        notes = []
        if self.standard.requests and self.standard.output_tokens is None:
            notes.append("The server sends no usage, so its tokens are unknown: chunks are not tokens.")
        good = self.fast.requests - self.fast.errors
        if not good:
            notes.append("No fast request succeeded.")
        elif self.fast_served < good:
            notes.append(f"Of {good} requests for fast the server says it served {self.fast_served} as fast.")
        summaries = [("standard", self.standard), ("fast", self.fast)]
        if self.spark is not None:
            summaries += [("spark", self.spark.alone), ("spark", self.spark.shared)]
        for name, summary in summaries:
            if summary.errors:
                notes.append(
                    f"{summary.errors} of {summary.requests} {name} requests failed "
                    f"({summary.errors / summary.requests:.0%}): {summary.reasons[0] if summary.reasons else 'unknown'}"
                )
        if failed := self.same_text.failed:
            notes.append(f"Same text: {len(failed)} answers are missing ({failed[0]}).")
        return notes


def mode_json(result: CompareResult, mode: ModeName) -> dict[str, Any]:
    """One mode's figures for the JSON report: rates in tokens/s, latencies in ms, shares and ratios plain."""
    figures = summary_json(result.summary(mode))
    return figures | {"speed_x": rounded(result.speed_x(mode)), "cost_x": rounded(result.cost_x(mode))}


def spark_json(spark: SparkResult) -> dict[str, Any]:
    """What is measured of a spark besides its row among the modes."""
    return {
        "model": spark.model,
        "fast_alone": summary_json(spark.fast_alone),
        "over_fast_alone": rounded(ratio(spark.alone.tokens_per_second, spark.fast_alone.tokens_per_second)),
        "sharing": {"standard": summary_json(spark.standard_beside), "spark": summary_json(spark.shared)},
    }


def summary_json(summary: Summary) -> dict[str, Any]:
    return {
        "tokens_per_second": rounded(summary.tokens_per_second),
        "ttft_ms": {"p50": _ms(summary.ttft_p50), "p99": _ms(summary.ttft_p99)},
        "tpot_ms": {"p50": _ms(summary.tpot_p50), "p99": _ms(summary.tpot_p99)},
        "itl_ms": {"p50": _ms(summary.itl_p50), "p99": _ms(summary.itl_p99)},
        "attainment": rounded(summary.attainment),
        "engine_ms_per_token": _ms(summary.engine_seconds_per_token),
        "requests": summary.requests,
        "errors": summary.errors,
        "error_rate": rounded(summary.error_rate),
        "error_reasons": list(summary.reasons),
        "output_tokens": summary.output_tokens,
        "output_tokens_from": None if summary.output_tokens is None else "usage",
    }


def phase_json(result: CompareResult, phase: Phase) -> dict[str, Any]:
    """The windows of one phase, in order of time."""
    windows = [window for window in result.windows if window.phase == phase]
    return {
        "seconds": round(median(window.seconds for window in windows), 3) if windows else None,
        "total_tokens_per_second": [rounded(window.total_tokens_per_second) for window in windows],
        "peak_tokens_per_second": [rounded(window.peak_tokens_per_second) for window in windows],
        "engine_busy": [rounded(window.engine_busy) for window in windows],
    }


def rounded(value: float | None) -> float | None:
    """To the four decimals that a report shows."""
    return None if value is None else round(value, 4)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)
