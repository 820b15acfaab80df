"""Seconds of a step and of a first token: the terms of a load times the fitted coefficients."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp
from typing import Any

from headway.plan.machine import Engine, Layout, Load, Machine
from headway.plan.shape import ModelShape
from headway.plan.terms import TERMS, Part, Situation, situation

SHARPNESS = 4.0  # of the smooth maximum of launching a step's kernels and running them


@dataclass(frozen=True, slots=True)
class Coefficients:
    """terms: one a term. engine, generation, dated: logarithms by which families of terms differ there.
    drafts: tokens that a step yields beyond one, with 1 and with 3 drafts. first: the coefficients of a first token's time.
    """

    terms: dict[str, float]
    engine: dict[str, dict[str, float]]
    generation: dict[str, dict[str, float]]
    dated: dict[str, float]
    drafts: dict[str, float]
    first: dict[str, float]
    first_engine: dict[str, float]
    accuracy: dict[str, Any]
    source: str

    def of(self, machine: Machine, engine: Engine) -> list[float]:
        """The coefficients as they are for an engine on a chip, in the order of TERMS. Unknown ones have no offsets."""
        scales: dict[str, float] = {}
        for offsets in (
            self.engine.get(engine.name, {}),
            self.generation.get(machine.generation, {}),
            self.dated if engine.dated else {},
        ):
            for family, offset in offsets.items():
                scales[family] = scales.get(family, 0.0) + offset
        return [self.terms[term.name] * exp(scales.get(term.family, 0.0)) for term in TERMS]


@dataclass(frozen=True, slots=True)
class Step:
    """What a load gets. tpot, ttft: seconds; rows: requests that decode at once; parts: seconds of a step by what they are for;
    tokens: a row's tokens a step (above 1 with speculation)."""

    tpot: float
    ttft: float
    rows: float
    tokens: float
    parts: dict[Part, float]

    @property
    def limit(self) -> Part:
        """What most of the time goes to."""
        return max(self.parts, key=lambda part: self.parts[part])


@cache
def fitted() -> Coefficients:
    """The coefficients that this version comes with."""
    return Coefficients(**json.loads(files("headway.plan").joinpath("coefficients.json").read_text("utf-8")))


def predict(
    shape: ModelShape,
    machine: Machine,
    layout: Layout,
    load: Load,
    engine: Engine,
    *,
    tokens_per_step: float | None = None,
    coefficients: Coefficients | None = None,
) -> Step:
    """Time per output token and to the first one, of a closed loop. tokens_per_step: with drafts; else as measured."""
    known = coefficients or fitted()
    state = situation(shape, machine, layout, load, engine)
    seconds = [value * factor for value, factor in zip(state.values, known.of(machine, engine), strict=True)]
    parts = split(seconds, state)
    tokens = tokens_per_step or _tokens(known, engine.drafts)
    tpot = sum(parts.values()) / tokens
    first = first_token(seconds, state, load, tpot, engine, known, shared=layout.dp > 1)
    return Step(tpot, first, state.rows, tokens, parts)


def split(seconds: list[float], state: Situation) -> dict[Part, float]:
    """Seconds of the mean step by part. A step with a prompt in it, or any without CUDA graphs, takes the longer of launching
    its kernels and running them (smoothly); what launching adds is that part's."""
    parts: dict[Part, float] = dict.fromkeys(
        ("weights", "kv", "compute", "network", "latency", "rows", "prompts", "launch"), 0.0
    )
    for term, value in zip(TERMS, seconds, strict=True):
        parts[term.part] += value * (state.met if term.part == "prompts" else 1.0)
    launch, parts["launch"] = parts["launch"], 0.0
    share = state.mixed
    if share:
        busy = sum(parts[part] for part in parts if part != "prompts") + parts["prompts"] / share
        parts["launch"] = share * ((busy**SHARPNESS + launch**SHARPNESS) ** (1 / SHARPNESS) - busy)
    return parts


def first_token(
    seconds: list[float], state: Situation, load: Load, tpot: float, engine: Engine, known: Coefficients, *, shared: bool
) -> float:
    """Seconds to the first token: the prompt's own time, those that came with it, the step under way, and waiting for room.
    shared: attention is in data parallel."""
    scales = {engine.name: True, "dated": engine.dated, "data parallel": shared, "drafts": engine.drafts > 0}
    scale = exp(sum(known.first_engine.get(name, 0.0) for name, applies in scales.items() if applies))
    columns = first_columns(seconds, state, load, tpot, engine)
    values = {name: column * known.first[name] for name, column in columns.items()}
    return sum(value * (1.0 if name in UNSCALED else scale) for name, value in values.items())


UNSCALED = ("in step", "waiting for room")
FIRST = ("always", "launch", "prompt", "step", "prompts beside", *UNSCALED)


def first_columns(seconds: list[float], state: Situation, load: Load, tpot: float, engine: Engine) -> dict[str, float]:
    """Seconds by cause, before their coefficients."""
    prompts = sum(value for term, value in zip(TERMS, seconds, strict=True) if term.part == "prompts")
    launch = sum(value for term, value in zip(TERMS, seconds, strict=True) if term.part == "launch")
    decode = sum(seconds) - prompts - launch
    one = prompts / state.prompts if state.prompts else 0.0
    return {
        "always": 1.0,
        "launch": launch,
        "prompt": one,
        "step": decode,
        "prompts beside": one * state.rows,
        "in step": one * state.rows * engine.prompts_first,
        "waiting for room": max(load.concurrency / state.rows - 1, 0.0) * tpot * load.osl,
    }


def _tokens(known: Coefficients, drafts: int) -> float:
    """Tokens a step yields for each row, as measured with one and with three drafts; between and beyond, in proportion."""
    if drafts == 0:
        return 1.0
    one, three = known.drafts["1"], known.drafts["3"]
    return 1 + (one if drafts == 1 else one + (three - one) * min(drafts - 1, 2) / 2)
