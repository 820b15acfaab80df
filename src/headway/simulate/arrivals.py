"""Made-up traffic: arrivals without end, or until somebody stops asking, from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from headway.simulate.trace import Arrival

Gap = Callable[[], float]
"""Draws the seconds from one arrival to the next."""


def constant(rate: float) -> Gap:
    """`rate` arrivals per second, evenly."""
    return lambda: 1.0 / rate


def poisson(rate: float, seed: int) -> Gap:
    """`rate` arrivals per second on average, each independent of the others."""
    expovariate = random.Random(f"gaps {seed}").expovariate
    return lambda: expovariate(rate)


def bursts(rate: float, cv: float, seed: int) -> Gap:
    """Gamma-distributed gaps: `cv` is their standard deviation over their mean. 1 is Poisson, above it arrivals come in bursts
    (BurstGPT, arXiv 2401.17644, and others fit real traffic so)."""
    gammavariate = random.Random(f"gaps {seed}").gammavariate
    shape, scale = 1.0 / cv**2, cv**2 / rate
    return lambda: gammavariate(shape, scale)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens per request: lognormal with this mean; spread: the standard deviation of the logarithm, 0 = always the mean."""

    mean: float
    spread: float = 0.0

    def draw(self, randomness: random.Random) -> int:
        if not self.spread:
            return max(1, round(self.mean))
        return max(1, round(randomness.lognormvariate(math.log(self.mean) - self.spread**2 / 2, self.spread)))


def synthetic(gap: Gap, requests: int, prompt: Lengths, output: Lengths, seed: int) -> Iterator[Arrival]:
    """So many arrivals, made as they are asked for. Prompts have nothing in common. Gaps and lengths are drawn apart, so that a
    change of the one leaves the other as it is."""
    return islice(_endless(gap, prompt, output, random.Random(f"lengths {seed}")), requests)


def _endless(gap: Gap, prompt: Lengths, output: Lengths, randomness: random.Random) -> Iterator[Arrival]:
    at = 0.0
    while True:
        at += gap()
        yield Arrival(at, prompt.draw(randomness), output.draw(randomness))
