"""Chips that a model can run on: memory, arithmetic, links and price, each figure with its source (`hardware/*.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from headway.errors import ModelError, UsageError
from headway.plan.machine import Machine

Kind = Literal["gpu", "tpu", "wafer", "lpu", "cpu"]

_Text = Annotated[str, Field(min_length=1)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_MAKERS = ("nvidia", "amd", "instinct", "geforce", "google", "cerebras", "apple", "intel")
_WITHOUT_LINK = 32e9  # bytes/s: PCIe 4.0 x16
_READS_PER_SECOND = 1e6
"""No chip reads all of a level more often than this in a second: a figure that says so has its units wrong."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MemoryLevel(_Part):
    """size: bytes of all of the chip's instances together; bandwidth: bytes/s that a step can read, None where nobody says.
    on_chip: on the same piece of silicon as what computes (caches, SRAM), not beside it."""

    level: _Text
    size: _Positive
    bandwidth: _Positive | None = None
    on_chip: bool = False
    source: _Text


class Peak(_Part):
    """Operations/s (a multiply-add is two), dense: vendors' figures with sparsity are twice that."""

    bf16: _Positive
    fp8: _Positive | None = None
    int8: _Positive | None = None
    fp4: _Positive | None = None
    source: _Text


class Link(_Part):
    """bandwidth: bytes/s from one chip to its peers, one way (vendors like to add both). domain: chips that reach each other
    at that rate."""

    bandwidth: _Positive
    domain: Annotated[int, Field(ge=1)]
    source: _Text


class Power(_Part):
    """watts: what the chip is designed for, at most (TDP)."""

    watts: _Positive
    source: _Text


class Price(_Part):
    """hourly: US dollars for one chip and one hour on demand, as of `date` (YYYY-MM-DD)."""

    hourly: _Positive
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: _Text


class Chip(_Part):
    """One chip. generation: which of the fit's offsets apply (see Machine). memory: fastest level first."""

    name: _Text
    aliases: tuple[_Text, ...] = ()
    vendor: _Text
    kind: Kind
    generation: _Text
    memory: Annotated[tuple[MemoryLevel, ...], Field(min_length=1)]
    peak: Peak | None = None
    link: Link | None = None
    power: Power | None = None
    price: Price | None = None
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Chip:
        sizes = [level.size for level in self.memory]
        if sizes != sorted(sizes):
            raise ValueError("memory levels should come from the smallest to the largest")
        for level in self.memory:
            if level.bandwidth is not None and level.bandwidth / level.size > _READS_PER_SECOND:
                raise ValueError(f"{level.level}: {level.bandwidth:g} bytes/s of {level.size:g} bytes; are the units right?")
        return self

    @property
    def main(self) -> MemoryLevel:
        """Where models usually lie: the largest level."""
        return self.memory[-1]

    @property
    def on_chip(self) -> MemoryLevel | None:
        """The largest level on the chip itself."""
        return next((level for level in reversed(self.memory) if level.on_chip), None)

    @property
    def held_on_chip(self) -> bool:
        """Whether models run from memory on the chip, for want of any other."""
        return self.main.on_chip

    @property
    def domain(self) -> int:
        """Chips that reach each other directly."""
        return self.link.domain if self.link else 1

    def machine(self) -> Machine:
        """As the step model knows it. Raises UsageError for a chip that it can't reckon with: one that keeps models on the
        chip, or whose bandwidth or peak isn't published."""
        if self.held_on_chip:
            raise UsageError(f"{self.name} keeps models on the chip; --fits says how fast they run there, not the step model")
        if self.peak is None or self.main.bandwidth is None:
            raise UsageError(f"no peak for {self.name} is published, so steps on it can't be predicted; measure it instead")
        link = self.link.bandwidth if self.link else _WITHOUT_LINK
        fp4 = self.peak.fp4 is not None
        return Machine(self.name, self.generation, self.main.size, self.main.bandwidth, self.peak.bf16, link, fp4)


@cache
def catalogue() -> Mapping[str, Chip]:
    """All known chips by name, vendors' order. Raises ModelError that names the file at fault."""
    found: dict[str, Chip] = {}
    names: dict[str, str] = {}
    for file in sorted(files("headway.plan").joinpath("hardware").iterdir(), key=lambda one: one.name):
        if not file.name.endswith(".toml"):
            continue
        chip = read_chip(file.read_text("utf-8"), file.name)
        for name in (chip.name, *chip.aliases):
            other = names.setdefault(_plain(name), chip.name)
            if other != chip.name:
                raise ModelError(f"{file.name}: {name!r} is a name of {other} already")
        found[chip.name] = chip
    return found


def read_chip(text: str, source: str) -> Chip:
    """A chip from TOML. Raises ModelError (one line: the file, the key, what it should be)."""
    try:
        return Chip.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{source} is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise ModelError(f"{source}: {place + ': ' if place else ''}{reason[0].lower()}{reason[1:]}") from None


def chip(name: str) -> Chip:
    """By its name or an alias; case, spaces, dashes and a leading maker don't matter. Raises UsageError with the nearest."""
    known = {_plain(each): one for one in catalogue().values() for each in (one.name, *one.aliases)}
    wanted = _plain(name)
    if wanted in known:
        return known[wanted]
    near = list(dict.fromkeys(known[each].name for each in get_close_matches(wanted, known, 5, 0.5)))[:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "`headway plan --hardware` lists those that are"
    raise UsageError(f"hardware {name!s:.80} isn't known; {hint}")


def _plain(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for maker in _MAKERS:
        plain = plain.removeprefix(maker) or plain
    return plain
