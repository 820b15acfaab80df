"""What a simulation found, by mode."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from headway.compare.result import rounded
from headway.compare.stats import percentile, ratio
from headway.modes import SPEEDS, Mode, ModeName, Modes
from headway.scheduler.request import Request

ON_TIME = 0.99
"""Attainment from which a request counts as one whose pace was kept."""


@dataclass(slots=True)
class ModeResult:
    """Requests of one mode. asked: arrivals that named it; downgraded: of these, served at standard for want of a fast seat;
    refused: found no place at all; too_long: more KV blocks than there are. Everything else is of those served in this mode:
    seconds to the first token and per token after it, attainment, tokens and device seconds charged."""

    mode: Mode
    asked: int = 0
    downgraded: int = 0
    refused: int = 0
    too_long: int = 0
    served: int = 0
    good: int = 0
    """Served with the first token within the mode's target and the pace kept on average: what goodput counts."""
    kept: int = 0
    """Served with an attainment of at least ON_TIME."""
    ttft: array[float] = field(default_factory=lambda: array("d"))
    tpot: array[float] = field(default_factory=lambda: array("d"))
    tokens: int = 0
    cached_tokens: int = 0
    due: int = 0
    on_time: int = 0
    engine_seconds: float = 0.0

    def add(self, request: Request) -> None:
        """Enter a request that has ended."""
        assert request.first_token_at is not None
        assert request.last_token_at is not None
        ttft = request.first_token_at - request.arrival
        output = request.num_output
        due = output - 1
        self.served += 1
        self.ttft.append(ttft)
        self.tokens += output
        self.cached_tokens += request.num_cached
        self.engine_seconds += request.engine_seconds
        in_time = ttft <= self.mode.ttft_target
        if due > 0:
            tpot = (request.last_token_at - request.first_token_at) / due
            self.tpot.append(tpot)
            self.due += due
            self.on_time += request.num_on_time
            in_time = in_time and tpot * request.pace <= 1.0 + 1e-9
        self.good += in_time
        self.kept += request.num_on_time >= ON_TIME * due

    @property
    def attainment(self) -> float | None:
        """Share of the tokens after the first that came by their deadline."""
        return ratio(self.on_time, self.due)

    @property
    def tokens_per_second(self) -> float | None:
        """Per user: from the median TPOT."""
        tpot = percentile(self.tpot, 50)
        return 1.0 / tpot if tpot else None

    @property
    def engine_seconds_per_token(self) -> float | None:
        return ratio(self.engine_seconds, self.tokens)


@dataclass(slots=True)
class SimulationResult:
    """seconds: of simulated time, from the first arrival to the last token; busy: of these, in steps. evicted: rows that had to
    give their blocks back. steps: forward passes."""

    standard: ModeResult
    fast: ModeResult
    seconds: float = 0.0
    busy: float = 0.0
    steps: int = 0
    evicted: int = 0

    @classmethod
    def empty(cls, modes: Modes) -> SimulationResult:
        return cls(ModeResult(modes.base), ModeResult(modes[ModeName.FAST]))

    def __getitem__(self, name: ModeName) -> ModeResult:
        return self.fast if name is ModeName.FAST else self.standard

    @property
    def requests(self) -> int:
        return self.standard.asked + self.fast.asked

    @property
    def total_tokens_per_second(self) -> float | None:
        return ratio(self.standard.tokens + self.fast.tokens, self.seconds)

    @property
    def busy_share(self) -> float | None:
        return ratio(self.busy, self.seconds)

    def goodput(self, mode: ModeName) -> float | None:
        """Requests per second that were served in this mode within its TTFT target and at its pace."""
        return ratio(self[mode].good, self.seconds)

    def speed_x(self, mode: ModeName) -> float | None:
        """Tokens/s per user over standard's."""
        return ratio(self[mode].tokens_per_second, self.standard.tokens_per_second)

    def cost_x(self, mode: ModeName) -> float | None:
        """Device seconds per output token over standard's."""
        return ratio(self[mode].engine_seconds_per_token, self.standard.engine_seconds_per_token)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: times in ms, rates per second, shares and ratios plain, None where nothing is known."""
        return {
            "seconds": round(self.seconds, 3),
            "requests": self.requests,
            "steps": self.steps,
            "evicted": self.evicted,
            "engine_busy": rounded(self.busy_share),
            "total_tokens_per_second": rounded(self.total_tokens_per_second),
            "modes": {name.value: self._mode_dict(name) for name in SPEEDS},
        }

    def _mode_dict(self, name: ModeName) -> dict[str, Any]:
        r = self[name]
        return {
            "pace": rounded(r.mode.pace),
            "ttft_target_ms": round(1000 * r.mode.ttft_target, 3),
            "requests": r.asked,
            "downgraded": r.downgraded,
            "refused": r.refused,
            "too_long": r.too_long,
            "served": r.served,
            "output_tokens": r.tokens,
            "cached_tokens": r.cached_tokens,
            "tokens_per_second": rounded(r.tokens_per_second),
            "speed_x": rounded(self.speed_x(name)),
            "attainment": rounded(r.attainment),
            "requests_on_time": rounded(ratio(r.kept, r.served)),
            "ttft_ms": {"p50": _ms(percentile(r.ttft, 50)), "p99": _ms(percentile(r.ttft, 99))},
            "tpot_ms": {"p50": _ms(percentile(r.tpot, 50)), "p99": _ms(percentile(r.tpot, 99))},
            "goodput": rounded(self.goodput(name)),
            "engine_ms_per_token": _ms(r.engine_seconds_per_token),
            "cost_x": rounded(self.cost_x(name)),
        }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)
