"""Where a model fits whole: in chips' own memory (SRAM, caches), in one chip's or several's HBM, in this machine's caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.calibrate.caches import data_caches, level_of, usable_cores
from headway.calibrate.residency import Residency, residencies
from headway.compare.report import STDOUT, UNKNOWN, check_json_path, write_json
from headway.errors import UsageError
from headway.plan.chip import Chip, catalogue
from headway.plan.listing import size_text
from headway.plan.machine import Engine, Layout, Load
from headway.plan.onchip import check, chips_needed, published, rule_of, tokens_per_second
from headway.plan.shape import ModelShape
from headway.plan.source import in_precision, read_model
from headway.plan.steps import predict
from headway.plan.terms import rows_that_fit

CONTEXT = 8192
"""Tokens of the one request that has to find room beside the weights."""
ANSWER = 512  # tokens of it that are the answer, for the step model
MOST_MEASURED = 2e9
"""Bytes that are read to see whether this machine's caches hold them: about a second."""
_SPLITS = (1, 2, 4, 8, 16, 32, 64)

Measure = Callable[[Sequence[int]], list[Residency]]


@dataclass(frozen=True, slots=True)
class OnChip:
    """A model in chips' own memory. size: bytes of one chip's; chips: that hold the weights; context: tokens of KV cache that
    find room beside them; tokens_per_second: of one user, None where nothing says."""

    chip: str
    level: str
    size: float
    chips: int
    context: int
    tokens_per_second: float | None


@dataclass(frozen=True, slots=True)
class InMemory:
    """A model in the memory beside the chips. chips: fewest (1, 2, 4, ...) that hold it and one request, None if those that
    reach each other don't; tokens_per_second: of one user alone, by the step model; None where that has no figures."""

    chip: str
    size: float
    chips: int | None
    tokens_per_second: float | None


@dataclass(frozen=True, slots=True)
class Here:
    """This machine. level: the smallest cache whose stated size holds the weights, or "memory"; stays: as measured,
    None for a model too large to ask; at_most: tokens/s that the measured speed of reading allows."""

    level: str
    memory: int
    fits: bool
    stays: bool | None
    at_most: float | None


@dataclass(frozen=True, slots=True)
class Fits:
    model: str
    weight_bytes: float
    kv_bytes_per_token: float
    on_chip: list[OnChip]
    in_memory: list[InMemory]
    here: Here


def fits_command(model: str, precision: str | None = None, json_path: Path | None = None) -> None:
    """`headway plan --fits`: print both tables, and write JSON if a path is given (`-` = stdout, the tables to stderr)."""
    check_json_path(json_path)
    found = fits(in_precision(read_model(model), precision))
    Console(stderr=json_path == STDOUT).print(as_tables(found))
    if json_path is not None:
        write_json(as_json(found), json_path)


def fits(shape: ModelShape, measure: Measure = residencies) -> Fits:
    """Over the whole catalogue, those that need fewest chips first. measure: how fast so many bytes are read here."""
    chips = catalogue().values()
    on_chip = [_on_chip(one, shape) for one in chips if one.on_chip is not None]
    in_memory = [_in_memory(one, shape) for one in chips if not one.held_on_chip]
    return Fits(
        shape.name,
        shape.weight_bytes,
        shape.kv_bytes,
        sorted(on_chip, key=lambda one: (one.chips, one.size)),
        sorted(in_memory, key=lambda one: (one.chips or 10**6, -one.size)),
        _here(shape, measure),
    )


def read_bytes(shape: ModelShape) -> float:
    """Of weights, that a step of one row reads: of a mixture, the experts that it uses."""
    moe = shape.experts
    return shape.dense_bytes + (shape.expert_bytes * moe.active / moe.total if moe else 0.0)


def _on_chip(one: Chip, shape: ModelShape) -> OnChip:
    near = one.on_chip
    assert near is not None
    chips = chips_needed(one, shape.weight_bytes)
    left = chips * near.size - shape.weight_bytes
    speed = tokens_per_second(one, shape) if any(point.chip == one.name for point in published()) else None
    return OnChip(one.name, near.level, near.size, chips, int(left / shape.kv_bytes) if shape.kv_bytes else 0, speed)


def _in_memory(one: Chip, shape: ModelShape) -> InMemory:
    try:
        machine = one.machine()
    except UsageError:
        return InMemory(one.name, one.main.size, _count(one.main.size, one.domain, shape), None)
    tp = next((n for n in _SPLITS if n <= one.domain and rows_that_fit(shape, machine, Layout(n), CONTEXT) >= 1), None)
    if tp is None:
        return InMemory(one.name, one.main.size, None, None)
    step = predict(shape, machine, Layout(tp), Load(1, CONTEXT - ANSWER, ANSWER), Engine())
    return InMemory(one.name, one.main.size, tp, 1 / step.tpot)


def _count(size: float, domain: int, shape: ModelShape) -> int | None:
    need = shape.weight_bytes + shape.kv_bytes_of(CONTEXT)
    return next((n for n in _SPLITS if n <= domain and n * size >= need), None)


def _here(shape: ModelShape, measure: Measure) -> Here:
    total = psutil.virtual_memory()
    fit = shape.weight_bytes + shape.kv_bytes_of(CONTEXT) <= total.total
    level = level_of(int(shape.weight_bytes), data_caches(usable_cores()))
    if shape.weight_bytes > min(MOST_MEASURED, total.available / 4):
        return Here(level, total.total, fit, None, None)
    measured = measure([int(shape.weight_bytes)])[0]
    return Here(level, total.total, fit, measured.stays, measured.gb_s * 1e9 / read_bytes(shape))


def as_json(found: Fits) -> dict[str, Any]:
    """Sizes in bytes. accuracy: of the speeds on chips, each predicted by a fit that left it out."""
    checked = {name: check(name) for name in dict.fromkeys(one.chip for one in published())}
    return {
        **asdict(found),
        "context": CONTEXT,
        "rules": {name: rule_of(name).terms | {"drafts": rule_of(name).drafted} for name in checked},
        "accuracy": {
            name: [
                {
                    "model": one.published.model,
                    "published": one.published.tokens_per_second,
                    "predicted": round(one.predicted, 1),
                    "error": round(one.error, 3),
                    "drafts": one.published.drafts,
                    "source": one.published.source,
                }
                for one in points
            ]
            for name, points in checked.items()
        },
    }


def as_tables(found: Fits) -> Group:
    near = Table(title=f"{found.model} on the chip itself ({size_text(found.weight_bytes)} of weights)")
    near.add_column("chip")
    for heading in ("own memory", "chips", "room for KV, tokens", "tokens/s, one user"):
        near.add_column(heading, justify="right")
    for one in found.on_chip:
        near.add_row(
            one.chip,
            f"{size_text(one.size)} {one.level}",
            f"{one.chips:,}",
            f"{one.context:,}",
            f"{one.tokens_per_second:,.0f}" if one.tokens_per_second else UNKNOWN,
        )
    far = Table(title=f"in the memory beside it, with one request of {CONTEXT:,} tokens")
    far.add_column("chip")
    for heading in ("memory", "chips", "tokens/s, one user"):
        far.add_column(heading, justify="right")
    for each in found.in_memory:
        far.add_row(
            each.chip,
            size_text(each.size),
            f"{each.chips}" if each.chips else "too small",
            f"{each.tokens_per_second:,.0f}" if each.tokens_per_second else UNKNOWN,
        )
    return Group(near, far, Text(_words(found)))


def _words(found: Fits) -> str:
    here = found.here
    lines = [
        "Speeds of wafers and LPUs: fitted to published ones, without drafts. Caches hold other things too.",
        f"This machine: {size_text(here.memory)} of memory, {'enough' if here.fits else 'too little'}; by size the weights fit "
        f"in {here.level}",
    ]
    if here.stays is not None:
        lines[-1] += f"; read again and again they {'stay in cache' if here.stays else 'do not stay in cache'}"
        lines[-1] += f", at most {here.at_most:,.0f} tokens/s"
    return "\n".join(lines)
