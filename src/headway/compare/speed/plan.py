"""What a load is: how many come, when, for how long, and what they ask."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headway.compare.speed.prompt_files import GivenPrompt
from headway.compare.speed.synthetic import Scale, prompt, prompt_of
from headway.compare.target import Ask
from headway.errors import UsageError
from headway.simulate.arrivals import Gap, Lengths, bursts, constant, poisson, synthetic
from headway.simulate.trace import Arrival

STREAMS, CONSTANT, POISSON, BURSTY, TRACE = "streams", "constant", "poisson", "bursty", "trace"
DEFAULT_SECONDS = 30.0
DEFAULT_GRACE = 30.0
MAX_LENGTH = 1_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One level of load. kind: STREAMS, a closed loop of `value` streams; or an open loop: CONSTANT, POISSON or BURSTY with
    `value` requests per second, or a TRACE `value` times as dense as it was."""

    kind: str
    value: float

    @property
    def is_open(self) -> bool:
        return self.kind != STREAMS

    @property
    def heading(self) -> str:
        """Of a column with the values."""
        return {STREAMS: "streams", TRACE: "trace, times"}.get(self.kind, f"{self.kind}, /s")

    @property
    def label(self) -> str:
        unit = {STREAMS: " stream" if self.value == 1 else " streams", TRACE: "x trace"}.get(self.kind, f"/s {self.kind}")
        return f"{self.value:g}{unit}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each point: it ends after so many requests or seconds, whichever comes first (a trace also with its last request);
    then those in flight get `grace` seconds. warm_up: requests before the first point, which count for nothing."""

    requests: int | None = None
    seconds: float | None = None
    grace: float = DEFAULT_GRACE
    warm_up: int = 0

    def check(self) -> None:
        """Raises UsageError."""
        if self.requests is not None and self.requests < 1:
            raise UsageError(f"--requests is {self.requests}; it should be at least 1")
        for name, value, least in (("--seconds", self.seconds, 0.1), ("--grace", self.grace, 0.0)):
            if value is not None and not (least <= value < math.inf):
                raise UsageError(f"{name} is {value:g}; it should be at least {least:g}")
        if self.warm_up < 0:
            raise UsageError(f"--warm-up is {self.warm_up}; it should be at least 0")


@dataclass(frozen=True, slots=True)
class Content:
    """What is asked. given: prompts in turn, again from the first when they have run out; without them they are made up, with
    about `prompt_tokens` tokens, as the endpoint counts them. output_tokens: of each answer; None = as a given prompt says.
    spread: of made-up lengths, see Lengths. may_end: answers may be shorter."""

    prompt_tokens: float = 120
    output_tokens: float | None = None
    spread: float = 0.0
    may_end: bool = False
    temperature: float = 0.0
    given: tuple[GivenPrompt, ...] = ()
    seed: int = 0

    DEFAULT_OUTPUT = 64

    def check(self) -> None:
        """Raises UsageError."""
        for name, tokens in (("--prompt-tokens", self.prompt_tokens), ("--output-tokens", self.output_tokens)):
            if tokens is not None and not 1 <= tokens <= MAX_LENGTH:
                raise UsageError(f"{name} is {tokens:g}; it should be from 1 to {MAX_LENGTH:,}")
        if not 0 <= self.spread <= 3:
            raise UsageError(f"--spread is {self.spread:g}; it should be from 0 to 3")
        if not 0 <= self.temperature <= 2:
            raise UsageError(f"--temperature is {self.temperature:g}; it should be from 0 to 2")

    def asks(self, gap: Gap, scale: Scale) -> Iterator[tuple[float, Ask]]:
        """Without end, each with its time in seconds."""
        output = Lengths(self.output_tokens or self.DEFAULT_OUTPUT, self.spread)
        arrivals = synthetic(gap, _ENDLESS, Lengths(self.prompt_tokens, self.spread), output, self.seed)
        for number, arrival in enumerate(arrivals):
            yield arrival.at, self._ask(number, arrival, scale)

    def asks_of(self, trace: Sequence[Arrival], times: float, scale: Scale) -> Iterator[tuple[float, Ask]]:
        for number, arrival in enumerate(trace):
            messages = prompt_of(arrival, number, scale, self.seed)
            yield arrival.at / times, self._worded(messages, arrival.output_tokens)

    def _ask(self, number: int, arrival: Arrival, scale: Scale) -> Ask:
        if not self.given:
            return self._worded(prompt(number, arrival.prompt_tokens, scale, self.seed), arrival.output_tokens)
        chosen = self.given[number % len(self.given)]
        wanted = None if self.output_tokens is not None else chosen.output_tokens
        return self._worded(chosen.messages, wanted or arrival.output_tokens)

    def _worded(self, messages: list[dict[str, str]], tokens: int) -> Ask:
        return Ask(messages, tokens, self.temperature, ignore_eos=not self.may_end)


_ENDLESS = 1_000_000_000
_SEEDS = 10_000
"""More than there are points in a sweep."""


@dataclass(frozen=True, slots=True)
class Plan:
    """points: one after the other. trace: of a TRACE point. cv: of BURSTY ones."""

    points: tuple[Point, ...]
    limits: Limits
    content: Content
    cv: float = 3.0
    trace: tuple[Arrival, ...] = ()

    def timetable(self, index: int, scale: Scale) -> Iterator[tuple[float, Ask]]:
        """What is asked at the point of this index, and when (a closed loop takes no notice of it). Each point has prompts of
        its own: the server may still have the others' in its prefix cache. -1 is the warm-up."""
        point, seed = self.points[max(index, 0)], self.content.seed * _SEEDS + index
        content = replace(self.content, seed=seed)
        if point.kind == TRACE:
            asks = content.asks_of(self.trace, point.value, scale)
        else:
            asks = content.asks(self._gap(point, seed), scale)
        return itertools.islice(asks, self.limits.requests)

    def _gap(self, point: Point, seed: int) -> Gap:
        if point.kind == POISSON:
            return poisson(point.value, seed)
        if point.kind == BURSTY:
            return bursts(point.value, self.cv, seed)
        return constant(point.value)


def parse_points(kind: str, text: str) -> tuple[Point, ...]:
    """From "1,8,32". Raises UsageError."""
    points = []
    for word in text.split(","):
        try:
            value = int(word) if kind == STREAMS else float(word)
        except ValueError:
            value = 0
        if not (value > 0 and math.isfinite(value)):
            what = "a number of streams" if kind == STREAMS else "a rate"
            raise UsageError(f"--{kind}: {word.strip()!r} should be {what} above 0 (or several, as in 1,2,4)")
        points.append(Point(kind, value))
    return tuple(points)
