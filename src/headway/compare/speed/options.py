"""What `headway load` was asked to do."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.compare.speed.counting import token_counter
from headway.compare.speed.journal import Journal
from headway.compare.speed.plan import (
    BURSTY,
    CONSTANT,
    DEFAULT_SECONDS,
    POISSON,
    STREAMS,
    TRACE,
    Content,
    Limits,
    Plan,
    Point,
    parse_points,
)
from headway.compare.speed.prompt_files import read_prompts
from headway.errors import UsageError
from headway.simulate.trace import Arrival, read_trace


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """As they were typed. streams, constant, poisson, bursty: a number, or several joined by commas; at most one of them, or a
    trace. percentiles: joined by commas. goodput: see parse_objectives. tokenizer: a model's name or path. seed: None = another
    one each time, so that no server has the prompts in its prefix cache; see `settled`."""

    url: str | None = None
    streams: str | None = None
    constant: str | None = None
    poisson: str | None = None
    bursty: str | None = None
    trace: Path | None = None
    cv: float = 3.0
    times: float = 1.0
    requests: int | None = None
    seconds: float | None = None
    grace: float = 30.0
    warm_up: int = 0
    prompts: Path | None = None
    prompt_tokens: float = 120
    output_tokens: float | None = None
    spread: float = 0.0
    may_end: bool = False
    temperature: float = 0.0
    seed: int | None = None
    goodput: Sequence[str] = ()
    percentiles: str = "50,90,95,99"
    tokenizer: str | None = None
    retries: int = 0
    journal: Path | None = None

    def settled(self) -> LoadOptions:
        """With a seed: the one that was given, else that of the journal that is gone on with, else one that is drawn."""
        if self.seed is not None:
            return self
        kept = Journal.heading_of(self.journal) if self.journal is not None else None
        seed = kept["plan"].get("seed") if kept and isinstance(kept.get("plan"), dict) else None
        return replace(self, seed=seed if isinstance(seed, int) else secrets.randbelow(1_000_000))

    def plan(self) -> Plan:
        """Raises UsageError for what makes no sense, and for files that can't be read."""
        limits = Limits(self.requests, self._seconds, self.grace, self.warm_up)
        limits.check()
        for name, value in (("--cv", self.cv), ("--times", self.times)):
            if not 0 < value < float("inf"):
                raise UsageError(f"{name} is {value:g}; it should be above 0")
        if self.retries < 0:
            raise UsageError(f"--retries is {self.retries}; it should be at least 0")
        points = self._points()
        count = token_counter(self.tokenizer) if self.tokenizer and self.prompts else None
        content = Content(
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            spread=self.spread,
            may_end=self.may_end,
            temperature=self.temperature,
            given=tuple(read_prompts(self.prompts, count)) if self.prompts else (),
            seed=self.seed or 0,
        )
        content.check()
        return Plan(points, limits, content, self.cv, self._arrivals())

    def percents(self) -> tuple[float, ...]:
        """With the 50th and the 99th, which tables show."""
        try:
            wanted = {float(word) for word in self.percentiles.split(",")}
        except ValueError:
            wanted = {-1.0}
        if not all(0 <= percent <= 100 for percent in wanted):
            raise UsageError(f"--percentiles is {self.percentiles!r}; it should be numbers from 0 to 100, such as 50,90,99")
        return tuple(sorted(wanted | {50.0, 99.0}))

    @property
    def _seconds(self) -> float | None:
        if self.seconds is None and self.requests is None and self.trace is None:
            return DEFAULT_SECONDS
        return self.seconds

    def _points(self) -> tuple[Point, ...]:
        rates = {STREAMS: self.streams, CONSTANT: self.constant, POISSON: self.poisson, BURSTY: self.bursty}
        given = {kind: text for kind, text in rates.items() if text is not None}
        if len(given) + (self.trace is not None) > 1:
            names = [f"--{kind}" for kind in given] + (["--trace"] if self.trace else [])
            raise UsageError(f"one of {' and '.join(names)}, not both")
        if self.trace is not None:
            return (Point(TRACE, self.times),)
        kind, text = next(iter(given.items()), (STREAMS, "1"))
        return parse_points(kind, text)

    def _arrivals(self) -> tuple[Arrival, ...]:
        return tuple(read_trace(self.trace)) if self.trace is not None else ()

    def settings(self) -> dict[str, Any]:
        """What must be the same for a journal to be gone on with; files by their names alone."""
        settings = {name: getattr(self, name) for name in LoadOptions.__slots__}
        del settings["journal"], settings["goodput"], settings["percentiles"]
        return {name: value.name if isinstance(value, Path) else value for name, value in settings.items()}
