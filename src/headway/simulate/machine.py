"""The machine that is simulated: step times and KV blocks, as they were measured or as a file says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from headway.catalog.home import home
from headway.catalog.resolve import find_here
from headway.errors import UsageError
from headway.modes import ModeName
from headway.runtime import kept
from headway.runtime.kept import KeptTimes
from headway.scheduler.cost import CostModel
from headway.simulate.trace import machine_line

DEFAULT_BLOCKS = 16_384
DEFAULT_BLOCK_SIZE = 32
MAX_NOISE = 2.0


@dataclass(frozen=True, slots=True)
class Machine:
    """paces: promised on it, by mode; empty where they are to follow from the costs. noise: see Simulation. slower: of each
    second, from the first arrival on and again from the beginning at its end, what steps took over what the costs say.
    about: what it is, for people."""

    costs: CostModel
    num_blocks: int
    block_size: int
    about: str
    paces: Mapping[ModeName, float] = field(default_factory=dict)
    noise: float = 0.0
    slower: tuple[float, ...] = ()

    def slower_at(self, now: float) -> float:
        """Of a step that starts then."""
        return self.slower[int(now) % len(self.slower)]


def machine_of(model: str) -> Machine:
    """As measured when `model` was last served here. Raises UsageError if it never was, ModelError for an unknown model."""
    ladder = kept_of(model)
    if ladder is None:
        raise UsageError(
            f"no step times of {model} have been measured here: start `headway serve {model}` once, or give --costs a file"
        )
    return Machine(ladder.costs, ladder.num_blocks, ladder.block_size, f"{model}, as measured here")


def kept_of(model: str) -> KeptTimes | None:
    """The step times of `model` that were kept on this machine last; None if there are none. Raises ModelError for an unknown
    model."""
    here = find_here(model)
    return None if here is None else kept.newest(home() / "ladders", here.sha256)


def machine_in(file: Path) -> Machine:
    """From JSON: `base` (pairs of tokens and seconds), `per_context` and `per_sample`, in seconds, as in CostModel.to_dict();
    `num_blocks`, `block_size`, `paces` and `noise` if need be. Raises UsageError."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}") from None
    return _machine(data, file)


def machine_of_recording(trace: Path) -> Machine | None:
    """As it was when `trace` was recorded; None if that doesn't tell. Raises UsageError."""
    data = machine_line(trace)
    return None if data is None else _machine(data, trace)


def _machine(data: object, file: Path) -> Machine:
    if not isinstance(data, dict):
        raise UsageError(f"{file} should hold a JSON object with base, per_context and per_sample")
    blocks, size = data.get("num_blocks", DEFAULT_BLOCKS), data.get("block_size", DEFAULT_BLOCK_SIZE)
    for name, value in (("num_blocks", blocks), ("block_size", size)):
        if type(value) is not int or value < 1:
            raise UsageError(f"{file}: {name} is {value!r}; it should be a whole number from 1")
    try:
        paces = {ModeName(name): float(pace) for name, pace in dict(data.get("paces", {})).items()}
        noise = min(MAX_NOISE, max(0.0, float(data.get("noise", 0.0))))
        slower = [float(each) for each in data.get("slower", ())]
        if not all(0.0 < each < inf for each in slower):
            raise ValueError("the numbers of slower should be above 0")
        return Machine(CostModel.from_dict(data), blocks, size, file.name, paces, noise, tuple(slower))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{file} holds no step times: {error}") from None
