"""The curve of a model on a chip: tokens/s of one user against tokens/s of all per chip, and what a token costs along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from headway.errors import UsageError
from headway.plan.frontier import frontier, throughput
from headway.plan.machine import Engine, Layout, Load, Machine
from headway.plan.quantized import named_bits
from headway.plan.shape import ModelShape
from headway.plan.steps import Step, predict
from headway.plan.terms import kv_room, rows_that_fit

STANDARD = 40.0
"""Tokens/s of one user that standard is to have, unless the fastest this hardware does isn't `speed` times as much."""
MOST_ROWS = 4096
SPLITS = (1, 2, 4, 8)
_PER_DOUBLING = 4  # batch sizes computed for each doubling

GIB = 2**30


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One batch size on one split. speed: tokens/s of one user; per_chip: of all users, per chip."""

    layout: Layout
    load: Load
    step: Step
    per_chip: float

    @property
    def speed(self) -> float:
        return 1 / self.step.tpot

    @property
    def chip_hours(self) -> float:
        """Hours of one chip for a million output tokens."""
        return 1e6 / self.per_chip / 3600


@dataclass(frozen=True, slots=True)
class Speculation:
    """drafts guessed tokens are verified in each step, each accepted with probability `acceptance` if those before it were.

    The drafts' own time is not counted: a draft head takes about one layer for each.
    """

    drafts: int
    acceptance: float

    @property
    def tokens(self) -> float:
        """Tokens of a step: 1 + a + ... + a^drafts (Leviathan et al., arXiv 2211.17192)."""
        return sum(self.acceptance**place for place in range(self.drafts + 1))


@dataclass(frozen=True, slots=True)
class Curve:
    """points: every batch size on every split; best: those that none beats in both speed and throughput, slowest first.
    standard, fast: the points of the modes. fast is None if no split is `speed` times as fast as standard."""

    points: list[CurvePoint]
    best: list[CurvePoint]
    speed: float
    standard: CurvePoint
    fast: CurvePoint | None

    @property
    def multiple(self) -> float | None:
        """What fast costs over standard; None if it is out of reach."""
        return self.price_of(self.speed)

    @property
    def largest_speed_up(self) -> float:
        """The most that this hardware can do, over standard."""
        return self.best[-1].speed / self.standard.speed

    def speed_up_at(self, multiple: float) -> float:
        """The most speed, over standard, that a price of at most `multiple` times standard's buys."""
        dearest = self.standard.chip_hours * multiple * (1 + 1e-9)
        return max(point.speed for point in self.best if point.chip_hours <= dearest) / self.standard.speed

    def price_of(self, speed_up: float) -> float | None:
        """The price multiple of the cheapest point with at least this speed-up over standard; None beyond the largest."""
        fast = [point for point in self.best if point.speed >= self.standard.speed * speed_up * (1 - 1e-9)]
        return fast[0].chip_hours / self.standard.chip_hours if fast else None


def make_curve(
    shape: ModelShape,
    machine: Machine,
    engine: Engine,
    splits: Sequence[int],
    isl: float,
    osl: float,
    speed: float,
    speculation: Speculation | None = None,
    standard: float | None = None,
) -> Curve:
    """All batch sizes on all splits that hold the model. Raises UsageError if none does, or standard's speed isn't reached."""
    fitting = [split for split in splits if rows_that_fit(shape, machine, Layout(split), isl + osl) >= 1]
    if not fitting:
        raise UsageError(does_not_fit(shape, machine, splits, isl + osl))
    points = [
        _point(shape, machine, engine, Layout(split), Load(rows, isl, osl), speculation)
        for split in fitting
        for rows in batches(rows_that_fit(shape, machine, Layout(split), isl + osl))
    ]
    return curve_through(points, speed, standard)


def curve_through(points: list[CurvePoint], speed: float, standard: float | None = None) -> Curve:
    """Raises UsageError if standard's speed isn't reached."""
    by_pair = {(point.speed, point.per_chip): point for point in points}
    best = [by_pair[pair] for pair in frontier(by_pair)]
    here = _usual(best, speed) if standard is None else _nearest(best, standard)
    if standard is not None and best[-1].speed < standard:
        raise UsageError(f"nothing here gives one user {standard:g} tokens/s; the most is {best[-1].speed:.0f}")
    return Curve(
        points=points,
        best=best,
        speed=speed,
        standard=here,
        fast=None if best[-1].speed < here.speed * speed else _nearest(best, here.speed * speed),
    )


def does_not_fit(shape: ModelShape, machine: Machine, splits: Sequence[int], tokens: float) -> str:
    """One line: by how much, and what would."""
    most = max(splits)
    short = -kv_room(shape, machine, Layout(most))
    need = shape.weight_bytes / GIB
    if short > 0:
        usable = need - short / GIB
        why = f"needs {need:.0f} GiB for its weights; {most} x {machine.name} hold {usable:.0f}, {short / GIB:.0f} GiB too few"
    else:
        room = kv_room(shape, machine, Layout(most)) / GIB
        why = (
            f"leaves {room:.1f} GiB on {most} x {machine.name} for the KV cache, too few for one request of {tokens:.0f} tokens"
        )
    return f"{shape.name} {why}{_what_would(shape, machine, tokens)}"


def _what_would(shape: ModelShape, machine: Machine, tokens: float) -> str:
    found = []
    enough = next((n for n in (1, 2, 4, 8, 16, 32, 64) if rows_that_fit(shape, machine, Layout(n), tokens) >= 1), None)
    if enough is not None:
        found.append(f"--tp {enough}")
    for name in ("fp8", "fp4"):
        smaller = shape.with_bits(named_bits(name, has_experts=shape.experts is not None))
        if smaller.weight_bytes < 0.9 * shape.weight_bytes:
            number = next((n for n in SPLITS if rows_that_fit(smaller, machine, Layout(n), tokens) >= 1), None)
            if number is not None:
                found.append(f"--precision {name} on {number}")
    return f"; what would fit: {', or '.join(found)}" if found else ""


def batches(most: float) -> list[float]:
    """1, and so on by half doublings, to the largest that fits."""
    most = min(float(int(most)), MOST_ROWS)
    sizes = {round(2 ** (place / _PER_DOUBLING)) for place in range(int(log2(most) * _PER_DOUBLING) + 1)}
    return sorted({float(size) for size in sizes if size <= most} | {most})


def _point(
    shape: ModelShape, machine: Machine, engine: Engine, layout: Layout, load: Load, speculation: Speculation | None
) -> CurvePoint:
    step = predict(shape, machine, layout, load, engine, tokens_per_step=speculation.tokens if speculation else None)
    return CurvePoint(layout, load, step, throughput(load.concurrency, step.ttft, step.tpot, load.osl, layout.chips))


def _usual(best: Sequence[CurvePoint], speed: float) -> CurvePoint:
    """The cheapest point of STANDARD's speed; slower where `speed` times that is out of reach."""
    slow_enough = [point for point in best if point.speed * speed <= best[-1].speed] or [best[0]]
    return next((point for point in slow_enough if point.speed >= STANDARD), slow_enough[-1])


def _nearest(best: Sequence[CurvePoint], speed: float) -> CurvePoint:
    """The cheapest point at no less than a speed (or the fastest)."""
    return next((point for point in best if point.speed >= speed * (1 - 1e-9)), best[-1])
