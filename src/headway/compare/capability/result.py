"""What a comparison of capability has found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from headway.compare.capability.advice import Advice, advise
from headway.compare.capability.bootstrap import Interval
from headway.compare.capability.chains import LENGTHS, speed_needed, survives
from headway.compare.capability.figures import ALL, Cell, TargetFigures
from headway.compare.machine import machine_facts, versions
from headway.compare.result import rounded


@dataclass(frozen=True, slots=True)
class CapabilityResult:
    """suites: names and what they check. tasks: how many of each. room: see Asking. on: the day, as 2026-03-09."""

    command: str
    on: str
    seed: int
    suites: dict[str, str]
    tasks: dict[str, int]
    targets: tuple[TargetFigures, ...]
    currency: str
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    machine: dict[str, Any] = field(default_factory=machine_facts)

    @property
    def advice(self) -> list[Advice]:
        """One for each suite, and for ALL."""
        return [advise(suite, {t.label: t.cells[suite] for t in self.targets}) for suite in (*self.suites, ALL)]

    @property
    def has_prices(self) -> bool:
        """Whether every target has a price; otherwise device seconds stand for it, where a server charges them."""
        return all(target.price is not None for target in self.targets)

    @property
    def reference(self) -> TargetFigures | None:
        """Of the chains: the target with the lowest mistake rate."""
        known = [t for t in self.targets if t.chain is not None and t.chain.mistake_rate is not None]
        return min(known, key=lambda t: t.chain.mistake_rate or 0.0 if t.chain else 1.0, default=None)

    def json(self) -> dict[str, Any]:
        """As plain data; unknown figures are None."""
        return {
            "machine": self.machine,
            "versions": versions(("headway",)),
            "command": self.command,
            "date": self.on,
            "seed": self.seed,
            "interrupted": self.interrupted,
            "suites": {name: {"about": about, "tasks": self.tasks[name]} for name, about in self.suites.items()},
            "currency": self.currency,
            "targets": {target.label: self._target_json(target) for target in self.targets},
            "advice": {advice.suite: asdict(advice) for advice in self.advice},
            "notes": list(self.notes),
        }

    def _target_json(self, target: TargetFigures) -> dict[str, Any]:
        speed = target.speed
        return {
            "price_per_million": None if target.price is None else asdict(target.price),
            "asked_at_once": target.streams,
            "beside_standard_streams": target.house,
            "gave_up": target.gave_up,
            "ttft_p50": rounded(speed.ttft),
            "tpot_p50": rounded(speed.tpot),
            "itl_p99": rounded(speed.itl_p99),
            "tokens_per_second": rounded(speed.tokens_per_second),
            "output_tokens": speed.output_tokens,
            "cached_share_of_prompts": rounded(speed.cached_share),
            "suites": {suite: cell_json(cell) for suite, cell in target.cells.items()},
            "chain": self._chain_json(target),
        }

    def _chain_json(self, target: TargetFigures) -> dict[str, Any] | None:
        chain, reference = target.chain, self.reference
        if chain is None or chain.mistake_rate is None:
            return None
        rate = chain.mistake_rate
        best = reference.chain.mistake_rate if reference and reference.chain else None
        return {
            "mistake_rate": rounded(rate),
            "interval": _interval(chain.interval),
            "observed": [{"steps": steps, "chains": count, "survived": good} for steps, count, good in chain.observed],
            "survival": {str(steps): rounded(survives(rate, steps)) for steps in LENGTHS},
            "speed_needed": None
            if best is None
            else {str(steps): rounded(speed_needed(rate, best, steps)) for steps in LENGTHS},
        }


def cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "answered": len(cell.right),
        "right": sum(cell.right),
        "correct": rounded(cell.share),
        "correct_interval": _interval(cell.share_interval),
        "api_failures": cell.failed,
        "reasons": list(cell.reasons),
        "seconds": rounded(cell.seconds),
        "seconds_per_correct": rounded(cell.seconds_per_right),
        "seconds_per_correct_interval": _interval(cell.seconds_interval),
        "price_per_correct": cell.price_per_right,
        "engine_seconds_per_correct": rounded(cell.engine_seconds_per_right),
        "calls": cell.calls,
        "calls_valid": rounded(cell.validity),
        "levels": [{"level": level, "right": right, "answered": count} for level, right, count in cell.levels],
    }


def _interval(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [rounded(end) for end in interval]
