"""`headway plan`: which speed a model has on a chip at which batch size, and what fast must cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from headway.compare.report import STDOUT, check_json_path, write_json
from headway.errors import UsageError
from headway.plan.chip import chip
from headway.plan.curve import SPLITS, Curve, Speculation, curve_through, make_curve
from headway.plan.fit import ENGINES
from headway.plan.here import NAME, here
from headway.plan.machine import Engine
from headway.plan.page import write_page
from headway.plan.picture import write_pictures
from headway.plan.report import Plan, print_plan, to_json
from headway.plan.source import in_precision, read_model

LARGEST_SPLIT = 72


@dataclass(frozen=True, slots=True)
class Asked:
    """What a plan is asked for. splits: chips that share a model, () for all up to 8; acceptance: None without speculation;
    standard: tokens/s of one user, None for 40. price: of a chip for an hour, None for the catalogue's."""

    model: str
    gpu: str
    splits: Sequence[int] = ()
    isl: int = 1024
    osl: int = 1024
    speed: float = 2.5
    standard: float | None = None
    acceptance: float | None = None
    drafts: int = 3
    price: float | None = None
    precision: str | None = None
    engine: str = "vllm"


def plan_command(asked: Asked, *, json_path: Path | None = None, plots: Path | None = None, report: Path | None = None) -> None:
    """Print the plan, and write what was asked for. Raises HeadwayError (one line) for whatever the user can mend."""
    check_json_path(json_path)
    plan = make_plan(asked)
    console = Console(stderr=json_path == STDOUT)
    print_plan(plan, console)
    written = [] if plots is None else write_pictures(plan, plots)
    if report is not None:
        write_page(plan, report)
        written.append(report)
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if json_path is not None:
        write_json(to_json(plan), json_path)


def make_plan(asked: Asked) -> Plan:
    """The curve (and another with speculation) that was asked for."""
    _check(asked)
    if asked.gpu == NAME:
        return _plan_here(asked)
    chosen = chip(asked.gpu)
    shape, machine = in_precision(read_model(asked.model), asked.precision), chosen.machine()
    engine, splits = (
        Engine(asked.engine),
        sorted(set(asked.splits)) or [split for split in SPLITS if split <= max(1, chosen.domain)],
    )
    curve = make_curve(shape, machine, engine, splits, asked.isl, asked.osl, asked.speed, standard=asked.standard)
    price = asked.price or (chosen.price.hourly if chosen.price else None)
    plan = Plan(shape, machine, engine, asked.isl, asked.osl, curve, price)
    drafting = replace(engine, drafts=asked.drafts)
    return _with_drafts(
        plan,
        asked,
        lambda drafts: make_curve(
            shape, machine, drafting, splits, asked.isl, asked.osl, asked.speed, drafts, curve.standard.speed
        ),
    )


def _plan_here(asked: Asked) -> Plan:
    if set(asked.splits) - {1}:
        raise UsageError("--gpu this is one machine: leave --tp out")
    if asked.precision is not None:
        raise UsageError("--gpu this plans with the weights as headway holds them: leave --precision out")
    shape = read_model(asked.model)
    machine = here(asked.model, shape)
    curve = curve_through(machine.points(asked.isl, asked.osl), asked.speed, asked.standard)
    plan = Plan(shape, machine.machine, Engine("headway"), asked.isl, asked.osl, curve, asked.price, about=machine.about)
    return _with_drafts(
        plan,
        asked,
        lambda drafts: curve_through(machine.points(asked.isl, asked.osl, drafts), asked.speed, curve.standard.speed),
    )


def _with_drafts(plan: Plan, asked: Asked, curve_of: Callable[[Speculation], Curve]) -> Plan:
    """The plan and a second curve, if speculation was asked for."""
    if asked.acceptance is None:
        return plan
    speculation = Speculation(asked.drafts, asked.acceptance)
    return replace(plan, speculation=speculation, speculated=curve_of(speculation))


def _check(asked: Asked) -> None:
    if asked.engine not in ENGINES:
        raise UsageError(f"engine {asked.engine!s:.40} isn't known; the fit knows {', '.join(sorted(ENGINES))}")
    for split in asked.splits:
        if not 1 <= split <= LARGEST_SPLIT:
            raise UsageError(f"--tp has to be 1 to {LARGEST_SPLIT}, not {split}")
    for name, value, least in (("--isl", asked.isl, 1), ("--osl", asked.osl, 2), ("--drafts", asked.drafts, 1)):
        if value < least:
            raise UsageError(f"{name} has to be at least {least}, not {value}")
    if not 1 < asked.speed <= 1000:
        raise UsageError(f"--speed has to be above 1, not {asked.speed:g}")
    if asked.standard is not None and not asked.standard > 0:
        raise UsageError(f"--standard-speed has to be above 0, not {asked.standard:g}")
    if asked.acceptance is not None and not 0 <= asked.acceptance <= 1:
        raise UsageError(f"--acceptance has to be 0 to 1, not {asked.acceptance:g}")
    if asked.price is not None and not 0 < asked.price < 1e6:
        raise UsageError(f"--price-per-hour has to be above 0, not {asked.price:g}")
