"""Made-up traffic has the rate, the burstiness and the lengths that were asked for."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, pstdev

import pytest

from headway.simulate.arrivals import Gap, Lengths, bursts, constant, poisson, synthetic

FIXED = Lengths(100), Lengths(10)


def gaps(gap: Gap, n: int = 20_000) -> list[float]:
    return [b.at - a.at for a, b in pairwise(synthetic(gap, n, *FIXED, seed=1))]


@pytest.mark.parametrize(("gap", "cv"), [(constant(4.0), 0.0), (poisson(4.0, 1), 1.0), (bursts(4.0, 3.0, 1), 3.0)])
def test_the_gaps_have_their_mean_and_deviation(gap: Gap, cv: float) -> None:
    drawn = gaps(gap)
    assert mean(drawn) == pytest.approx(0.25, rel=0.1)
    assert pstdev(drawn) / mean(drawn) == pytest.approx(cv, rel=0.15, abs=1e-6)


def test_lengths_keep_their_mean_whatever_the_spread() -> None:
    spread = [a.prompt_tokens for a in synthetic(constant(1.0), 20_000, Lengths(100, 0.8), Lengths(10), seed=1)]
    assert mean(spread) == pytest.approx(100, rel=0.05)
    assert min(spread) < 30
    assert max(spread) > 500
    assert {a.output_tokens for a in synthetic(constant(1.0), 100, *FIXED, seed=1)} == {10}


def test_a_seed_gives_the_same_traffic_and_other_lengths_do_not_move_it() -> None:
    def made(seed: int, output: Lengths = FIXED[1]) -> list[float]:
        return [a.at for a in synthetic(poisson(4.0, seed), 50, FIXED[0], output, seed)]

    assert made(1) == made(1) == made(1, Lengths(99, 0.5))
    assert made(1) != made(2)
