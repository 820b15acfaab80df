"""Speed on chips that keep a model in their own memory: what one user gets, fitted to what is published.

A roofline says nothing here. WSE-3 reads all of its SRAM 477,000 times a second, Groq's LPU 348,000 times; models run at some
hundred to a few thousand tokens/s, because every layer has to wait for the one before, and signals for the way between.

- LPU: seconds a token = a x layers + b x chips. A layer is a fixed piece of a static schedule, and the activations pass through
  every chip on their way.
- Wafer: seconds a token = a x sqrt(active weights). Every core has its own weights and works at the same time as all others;
  what grows with a layer is the distance across the area that holds it, a square root.
- With drafts (speculative decoding) one factor on that, the mean of those services that are known or seen to use it.

Least squares of relative errors; so few points that the fit is made when it is asked for, and checked by leaving one out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from headway.errors import UsageError
from headway.plan.chip import Chip, chip
from headway.plan.known import known_shape
from headway.plan.quantized import named_bits
from headway.plan.shape import ModelShape


@dataclass(frozen=True, slots=True)
class Placed:
    """A model on such chips. layers; active: weights a token is multiplied with; chips: that hold its weights."""

    layers: int
    active: float
    chips: int


@dataclass(frozen=True, slots=True)
class Published:
    """tokens_per_second: of one user, as the source says. drafts: with speculative decoding."""

    chip: str
    model: str
    placed: Placed
    tokens_per_second: float
    drafts: bool
    date: str
    source: str


@dataclass(frozen=True, slots=True)
class Rule:
    """terms: seconds by name; drafted: what drafts make of a token's seconds, as a share of 1 (None: nothing is published)."""

    kind: str
    terms: dict[str, float]
    drafted: float | None

    def seconds(self, placed: Placed, drafts: bool = False) -> float:
        """A token's, of one user. Raises UsageError with drafts where nothing is known of them."""
        if drafts and self.drafted is None:
            raise UsageError("nothing is published of speculation on such chips; ask without it")
        plain = sum(factor * value for factor, value in zip(self.terms.values(), _columns(self.kind, placed), strict=True))
        return plain * (self.drafted or 1.0) if drafts else plain


@dataclass(frozen=True, slots=True)
class Checked:
    """A published speed, and what a fit says of it that never saw it. error: predicted / published - 1."""

    published: Published
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.published.tokens_per_second - 1


def chips_needed(one: Chip, weight_bytes: float, beside: float = 0.0) -> int:
    """Chips whose own memory holds so many bytes of weights, and `beside` (KV cache, say) with them."""
    near = one.on_chip
    if near is None:
        raise UsageError(f"{one.name} has no memory of its own that a model could stay in")
    return max(1, ceil((weight_bytes + beside) / near.size))


def place(one: Chip, shape: ModelShape) -> Placed:
    return Placed(shape.layers, float(shape.active_weights), chips_needed(one, shape.weight_bytes))


def tokens_per_second(one: Chip, shape: ModelShape, *, drafts: bool = False) -> float:
    """Of one user. A model smaller than any published gets what the smallest of them does: nobody has shown more. Raises
    UsageError for a chip of which no speeds are published."""
    rule, placed = rule_of(one.name), place(one, shape)
    known = [each.placed for each in published() if each.chip == one.name and not each.drafts]
    placed = Placed(
        max(placed.layers, min(each.layers for each in known)),
        max(placed.active, min(each.active for each in known)),
        max(placed.chips, min(each.chips for each in known)),
    )
    return 1 / rule.seconds(placed, drafts)


@cache
def published() -> tuple[Published, ...]:
    """All that is in `published.toml`."""
    table = tomllib.loads(files("headway.plan").joinpath("published.toml").read_text("utf-8"))
    return tuple(_published(entry) for entry in table["speed"])


@cache
def rule_of(name: str) -> Rule:
    """Fitted to the chip's published speeds."""
    points = [one for one in published() if one.chip == name]
    if not points:
        known = ", ".join(dict.fromkeys(one.chip for one in published()))
        raise UsageError(f"no speeds of models in the memory of {name} are published; known are {known}")
    return fit(chip(name).kind, points)


def fit(kind: str, points: Sequence[Published]) -> Rule:
    """Of one kind of chip ("wafer" or "lpu")."""
    plain = [one for one in points if not one.drafts]
    columns = np.array([_columns(kind, one.placed) for one in plain])
    factors = _smallest_relative(columns, np.array([1 / one.tokens_per_second for one in plain]))
    rule = Rule(kind, dict(zip(_NAMES[kind], map(float, factors), strict=True)), None)
    drafted = [one for one in points if one.drafts]
    if not drafted:
        return rule
    expected = np.array([[rule.seconds(one.placed)] for one in drafted])
    share = _smallest_relative(expected, np.array([1 / one.tokens_per_second for one in drafted]))
    return Rule(kind, rule.terms, float(share[0]))


def check(name: str) -> list[Checked]:
    """Every published speed of a chip, predicted by a fit to the others."""
    points = [one for one in published() if one.chip == name]
    kind = chip(name).kind
    return [
        Checked(one, 1 / fit(kind, [other for other in points if other is not one]).seconds(one.placed, one.drafts))
        for one in points
    ]


_NAMES = {"wafer": ("sqrt of active weights",), "lpu": ("layer", "chip")}


def _columns(kind: str, placed: Placed) -> tuple[float, ...]:
    if kind == "wafer":
        return (sqrt(placed.active / 1e9),)
    return (float(placed.layers), float(placed.chips))


def _smallest_relative(columns: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Factors of the columns that make the sum of squared relative errors least."""
    return np.asarray(np.linalg.lstsq(columns / seconds[:, None], np.ones(len(seconds)), rcond=None)[0], dtype=np.float64)


def _published(entry: dict[str, object]) -> Published:
    one, model, bits = chip(str(entry["chip"])), str(entry["model"]), str(entry["bits"])
    if "total" in entry:
        width = named_bits(bits, has_experts=False).mlp
        total, active = float(str(entry["total"])), float(str(entry["active"]))
        placed = Placed(int(str(entry["layers"])), active, chips_needed(one, total * width / 8))
    else:
        shape = known_shape(model)
        mxfp4 = bits == "mxfp4"
        precision = named_bits("bf16" if mxfp4 else bits, has_experts=shape.experts is not None, mxfp4_experts=mxfp4)
        placed = place(one, shape if mxfp4 else shape.with_bits(precision))
    return Published(
        one.name,
        model,
        placed,
        float(str(entry["tokens_per_second"])),
        bool(entry.get("drafts", False)),
        str(entry["date"]),
        str(entry["source"]),
    )
