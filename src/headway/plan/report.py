"""A plan for people (a table and a few sentences) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from headway.plan.curve import GIB, Curve, CurvePoint, Speculation
from headway.plan.machine import Engine, Machine
from headway.plan.shape import ModelShape
from headway.plan.steps import fitted
from headway.plan.terms import Part

LIMITS: dict[Part, str] = {
    "weights": "reading weights",
    "kv": "reading KV cache",
    "compute": "arithmetic",
    "network": "the links",
    "latency": "latency per layer",
    "rows": "work per row",
    "prompts": "prompts between",
    "launch": "launching kernels",
}
SPEED_UPS = (1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Whose price multiples are told."""
_ROWS = 12  # of the table


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked and found. price: of a chip for an hour, or None. speculated: the curve with speculation, if asked for.
    about: where the step times come from if they were measured here, else None and they are the fit's."""

    shape: ModelShape
    machine: Machine
    engine: Engine
    isl: int
    osl: int
    curve: Curve
    price: float | None = None
    speculation: Speculation | None = None
    speculated: Curve | None = None
    about: str | None = None

    def cost(self, point: CurvePoint) -> float:
        """Of a million output tokens: money with a price, else hours of a chip."""
        return point.chip_hours * (self.price or 1.0)

    @property
    def unit(self) -> str:
        return "chip-hours" if self.price is None else "$"


def to_json(plan: Plan) -> dict[str, Any]:
    """The schema:

    - model: {name, parameters, active_parameters, weight_bytes, kv_bytes_per_token}; gpu: {name, memory_bytes, bandwidth}
    - engine; isl, osl: tokens; price_per_hour or null
    - standard, fast (null if out of reach): a point; speed_up asked for, price_multiple of it (null likewise)
    - largest_speed_up; price_multiples: [{speed_up, price_multiple or null}]; speed_up_at_6x: what six times the price buys
    - frontier, points: [{tp, batch, tokens_s_per_user, tokens_s_per_gpu, tokens_s, ttft_ms, tpot_ms, chip_hours_per_million,
      price_per_million or null, limit, parts: {part: share of a step}}]
    - speculation: null, or {drafts, acceptance, tokens_per_step, and as above: standard, fast, price_multiple, ..., frontier}
    - accuracy: of the fit, on groups of points it never saw; fit: what it was fitted to; both null on this machine
    - measured: on this machine, whose step times these are, else null
    """
    known = fitted()
    shape = plan.shape
    report: dict[str, Any] = {
        "model": {
            "name": shape.name,
            "parameters": shape.total_weights,
            "active_parameters": shape.active_weights,
            "weight_bytes": round(shape.weight_bytes),
            "kv_bytes_per_token": shape.kv_bytes,
        },
        "gpu": {"name": plan.machine.name, "memory_bytes": plan.machine.memory, "bandwidth": plan.machine.bandwidth},
        "engine": plan.engine.name,
        "isl": plan.isl,
        "osl": plan.osl,
        "price_per_hour": plan.price,
        **_curve_json(plan, plan.curve),
        "points": [_point_json(plan, point) for point in plan.curve.points],
        "speculation": None,
        "accuracy": known.accuracy if plan.about is None else None,
        "fit": known.source if plan.about is None else None,
        "measured": plan.about,
    }
    if plan.speculation is not None and plan.speculated is not None:
        spoken = {"drafts": plan.speculation.drafts, "acceptance": plan.speculation.acceptance}
        report["speculation"] = (
            spoken | {"tokens_per_step": round(plan.speculation.tokens, 3)} | _curve_json(plan, plan.speculated)
        )
    return report


def print_plan(plan: Plan, console: Console) -> None:
    """The table, and what it says."""
    console.print(headline(plan), highlight=False, soft_wrap=True)
    console.print(_table(plan, plan.curve))
    for line in sentences(plan):
        console.print(line, highlight=False, soft_wrap=True)


def headline(plan: Plan) -> str:
    shape = plan.shape
    size = f"{shape.total_weights / 1e9:.1f}B parameters"
    if shape.experts is not None:
        size += f", {shape.active_weights / 1e9:.1f}B a token"
    return (
        f"{shape.name} ({size}, {shape.weight_bytes / GIB:.1f} GiB, {shape.kv_bytes / 1024:.0f} KiB of KV cache a token) "
        f"on {plan.machine.name}, {plan.engine.name}, {plan.isl} tokens in, {plan.osl} out"
    )


def sentences(plan: Plan) -> list[str]:
    """What the curve says, one thing a line."""
    curve = plan.curve
    found = _modes(plan, curve, "")
    dearer = [(speed, curve.price_of(speed)) for speed in SPEED_UPS]
    found.append("Price of a speed-up: " + ", ".join(f"{s:g}x costs {p:.1f}x" for s, p in dearer if p is not None))
    six, most = curve.speed_up_at(6.0), curve.largest_speed_up
    found.append(f"6x the price buys {six:.1f}x; the largest speed-up of this hardware is {most:.1f}x")
    if plan.speculation is not None and plan.speculated is not None:
        how = f"With {plan.speculation.drafts} drafts, {plan.speculation.acceptance:.0%} accepted: "
        found += _modes(plan, plan.speculated, how)
    if plan.about is not None:
        found.append(plan.about)
        return found
    if plan.machine.generation not in fitted().generation:
        found.append(
            f"No point was measured on {plan.machine.name} or its generation: its figures are the data sheet's, the model of a "
            "step is that of measured chips, and how far off this is, nobody has checked"
        )
        return found
    accuracy = fitted().accuracy
    found.append(
        f"Fitted to {accuracy['points']} public measurements; those of a model, chip and engine it never saw are predicted "
        f"within {accuracy['tpot_median_error']:.0%} (median; mean {accuracy['tpot_mean_error']:.0%})"
    )
    return found


def _modes(plan: Plan, curve: Curve, how: str) -> list[str]:
    standard, fast = curve.standard, curve.fast
    found = [f"{how}standard: {_told(plan, standard)}"]
    if fast is None or curve.multiple is None:
        found.append(f"{how}fast: {curve.speed:g}x is out of reach; the largest speed-up is {curve.largest_speed_up:.1f}x")
    else:
        found.append(f"{how}fast:     {_told(plan, fast)}; {curve.speed:g}x costs {curve.multiple:.1f}x here")
    return found


def _told(plan: Plan, point: CurvePoint) -> str:
    return (
        f"{_speed(point.speed)} tokens/s for each of {point.load.concurrency:.0f} on {point.layout.chips}, "
        f"{money(plan, point)} a million, limited by {LIMITS[point.step.limit]}"
    )


def _speed(speed: float) -> str:
    return f"{speed:.0f}" if speed >= 10 else f"{speed:.2g}"


def money(plan: Plan, point: CurvePoint) -> str:
    cost = plan.cost(point)
    return f"${amount(cost)}" if plan.price is not None else f"{amount(cost)} chip-hours"


def amount(cost: float) -> str:
    """Two decimals, or two digits of what is smaller."""
    return f"{cost:.2f}" if cost >= 0.1 else f"{cost:.2g}"


def marked(curve: Curve, point: CurvePoint) -> str:
    """The modes whose point this is."""
    return "standard" if point is curve.standard else "fast" if point is curve.fast else ""


def shown(curve: Curve, most: int = _ROWS) -> list[CurvePoint]:
    """The frontier thinned for a table, the modes' points kept."""
    every = max(1, -(-len(curve.best) // most))
    return [point for place, point in enumerate(curve.best) if place % every == 0 or marked(curve, point)]


def _table(plan: Plan, curve: Curve) -> Table:
    """Narrow enough for a terminal of 80 columns."""
    unit = "h" if plan.price is None else plan.unit
    table = Table(
        "user", "chip", "all", f"{unit}/M", "chips", "batch", "TTFT\nms", "limit", "mode", title="tokens/s per", box=SIMPLE_HEAD
    )
    table.title_justify = "left"
    for column in table.columns[:7]:
        column.justify = "right"
    table.columns[7].no_wrap = True
    for point in shown(curve):
        *figures, ttft, _ = cells(plan, point)
        limit = f"{point.step.limit} {_share(point):.0%}"
        table.add_row(*figures, ttft.removesuffix(" ms"), limit, marked(curve, point))
    return table


def _share(point: CurvePoint) -> float:
    """Of a step's time, that its limit takes."""
    return point.step.parts[point.step.limit] / sum(point.step.parts.values())


def cells(plan: Plan, point: CurvePoint) -> Sequence[str]:
    """A point's figures as text: the columns of the table."""
    return (
        f"{point.speed:.1f}",
        f"{point.per_chip:.0f}",
        f"{point.per_chip * point.layout.chips:.0f}",
        amount(plan.cost(point)),
        str(point.layout.chips),
        f"{point.load.concurrency:.0f}",
        f"{point.step.ttft * 1e3:.0f} ms",
        f"{LIMITS[point.step.limit]} ({_share(point):.0%})",
    )


def _curve_json(plan: Plan, curve: Curve) -> dict[str, Any]:
    return {
        "standard": _point_json(plan, curve.standard),
        "fast": None if curve.fast is None else _point_json(plan, curve.fast),
        "speed_up": curve.speed,
        "price_multiple": _rounded(curve.multiple),
        "largest_speed_up": _rounded(curve.largest_speed_up),
        "price_multiples": [{"speed_up": speed, "price_multiple": _rounded(curve.price_of(speed))} for speed in SPEED_UPS],
        "speed_up_at_6x": _rounded(curve.speed_up_at(6.0)),
        "frontier": [_point_json(plan, point) for point in curve.best],
    }


def _point_json(plan: Plan, point: CurvePoint) -> dict[str, Any]:
    whole = sum(point.step.parts.values())
    return {
        "tp": point.layout.tp,
        "batch": int(point.load.concurrency),
        "tokens_s_per_user": _rounded(point.speed),
        "tokens_s_per_gpu": _rounded(point.per_chip),
        "tokens_s": _rounded(point.per_chip * point.layout.chips),
        "ttft_ms": _rounded(point.step.ttft * 1e3),
        "tpot_ms": _rounded(point.step.tpot * 1e3),
        "chip_hours_per_million": _rounded(point.chip_hours),
        "price_per_million": _rounded(plan.cost(point)) if plan.price is not None else None,
        "limit": point.step.limit,
        "parts": {part: round(seconds / whole, 4) for part, seconds in point.step.parts.items()},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
