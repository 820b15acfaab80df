"""What is simulated: a trace, or traffic made up to order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from headway.errors import UsageError
from headway.simulate.arrivals import Gap, Lengths, bursts, constant, poisson, synthetic
from headway.simulate.clients import Clients
from headway.simulate.coming import closed_loops
from headway.simulate.trace import Arrival, read_trace, with_modes

MAX_LENGTH = 1_000_000
DEFAULT_REQUESTS = 10_000


@dataclass(frozen=True, slots=True)
class Traffic:
    """trace: a file, or one of constant, poisson and bursty: arrivals per second, made up. requests: how many at most (None:
    the whole trace, DEFAULT_REQUESTS made-up ones). fast_share: of the arrivals that name no mode.

    clients: who of a recording waits for an end before the next request comes.

    cv, prompt_tokens, output_tokens, spread: of made-up traffic, see arrivals.py. times: a trace's arrivals come so many times
    as densely."""

    trace: Path | None = None
    constant: float | None = None
    poisson: float | None = None
    bursty: float | None = None
    cv: float = 3.0
    requests: int | None = None
    prompt_tokens: float = 120
    output_tokens: float = 64
    spread: float = 0.0
    fast_share: float = 0.0
    times: float = 1.0
    clients: Clients = Clients.AUTO

    def arrivals(self, seed: int) -> tuple[Iterator[Arrival], int, bool]:
        """The arrivals that come by the clock, each with a mode; how many there are, with those that wait for an end; and
        whether guesses were verified for some of them. Raises UsageError."""
        self._check()
        speculates = False
        coming: Iterable[Arrival]
        if self.trace is not None:
            whole = read_trace(self.trace)
            number = len(whole) if self.requests is None else min(self.requests, len(whole))
            whole = whole[:number]
            speculates = any(arrival.drafts_per_step for arrival in whole)
            if self.clients is not Clients.OPEN:
                whole = closed_loops(whole, everybody=self.clients is Clients.CLOSED)
            coming = (replace(arrival, at=arrival.at / self.times) for arrival in whole) if self.times != 1.0 else whole
        else:
            number = DEFAULT_REQUESTS if self.requests is None else self.requests
            prompt, output = (Lengths(mean, self.spread) for mean in (self.prompt_tokens, self.output_tokens))
            coming = synthetic(self._gap(seed), number, prompt, output, seed)
        return with_modes(coming, self.fast_share, seed), number, speculates

    def _gap(self, seed: int) -> Gap:
        if self.constant is not None:
            return constant(self.constant)
        if self.poisson is not None:
            return poisson(self.poisson, seed)
        assert self.bursty is not None
        return bursts(self.bursty, self.cv, seed)

    def _check(self) -> None:
        rates = {"--constant": self.constant, "--poisson": self.poisson, "--bursty": self.bursty}
        given = [name for name, rate in rates.items() if rate is not None]
        if self.trace is not None and given:
            raise UsageError(f"a trace or {given[0]}, not both")
        if self.trace is None and len(given) != 1:
            raise UsageError("what is to be simulated? Name a trace, or give one of --constant, --poisson and --bursty a rate")
        positive = rates | {"--cv": self.cv, "--times": self.times}
        for name, value in positive.items():
            if value is not None and not (value > 0 and isfinite(value)):
                raise UsageError(f"{name} is {value:g}; it should be above 0")
        for name, tokens in (("--prompt-tokens", self.prompt_tokens), ("--output-tokens", self.output_tokens)):
            if not 1 <= tokens <= MAX_LENGTH:
                raise UsageError(f"{name} is {tokens:g}; it should be from 1 to {MAX_LENGTH:,}")
        if not 0 <= self.spread <= 3:
            raise UsageError(f"--spread is {self.spread:g}; it should be from 0 to 3")
        if not 0 <= self.fast_share <= 1:
            raise UsageError(f"--fast-share is {self.fast_share:g}; it should be from 0 to 1")
        if self.requests is not None and self.requests < 1:
            raise UsageError(f"--requests is {self.requests}; it should be at least 1")
