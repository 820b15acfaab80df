"""Chains: what a mistake rate means for work in many steps.

With one mistake rate p at every step, k steps are survived with the probability (1 - p)^k. A chain that is begun again until it
is survived takes its seconds over that; so a quicker target with more mistakes must be ((1 - p_ref) / (1 - p))^k times as quick
as the one it stands beside, to come to the same seconds for each chain that is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.compare.capability.bootstrap import Interval, rate_interval
from headway.compare.suites.task import Verdict

LENGTHS = (1, 2, 3, 5, 8, 13, 20)
"""At which reports show the survival."""


@dataclass(frozen=True, slots=True)
class Survival:
    """observed: for each length, how many chains there were, and how many came to their end. mistake_rate: mistakes over steps
    that were tried (the likeliest rate if every step has the same), None without a step; interval: of it, 95%."""

    observed: tuple[tuple[int, int, int], ...]
    mistake_rate: float | None
    interval: Interval | None


def survival(verdicts: Sequence[Verdict]) -> Survival | None:
    """Of the chains among these; None if there is none."""
    chains = [verdict for verdict in verdicts if verdict.steps]
    if not chains:
        return None
    mistakes = [float(not chain.correct) for chain in chains]
    tried = [chain.survived + mistake for chain, mistake in zip(chains, mistakes, strict=True)]
    lengths = sorted({chain.steps for chain in chains})
    observed = tuple((k, len(of := [c for c in chains if c.steps == k]), sum(c.correct for c in of)) for k in lengths)
    return Survival(observed, sum(mistakes) / sum(tried), rate_interval(mistakes, tried))


def survives(mistake_rate: float, steps: int) -> float:
    """The probability of so many steps without a mistake."""
    return float((1 - mistake_rate) ** steps)


def speed_needed(mistake_rate: float, reference: float, steps: int) -> float | None:
    """How many times as quick as a target with the mistake rate `reference` one must be. None if no speed is enough."""
    if mistake_rate >= 1:
        return None
    return survives(reference, steps) / survives(mistake_rate, steps)
