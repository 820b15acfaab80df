"""The cost model: it fits what was measured, stays monotone, and follows a machine that changes."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scheduler.cost import CostModel, Observation


def true_seconds(tokens: int, context: int, samples: int, speed: float = 1.0) -> float:
    """A machine with a knee at 16 tokens."""
    return speed * (0.010 + 0.0001 * min(tokens, 16) + 0.0006 * max(0, tokens - 16) + 1e-6 * context + 2e-5 * samples)


def ladder(speed: float = 1.0) -> list[Observation]:
    rungs = [(n, n * 128, n) for n in (1, 2, 4, 8, 16, 32, 64)] + [(128, 128 * 128, 1), (256, 256 * 128, 1)]
    rungs += [(64, 64 * 128, 1), (32, 32 * 1024, 32)]
    return [Observation(n, c, s, true_seconds(n, c, s, speed)) for n, c, s in rungs]


def test_fit_reproduces_the_ladder_and_what_lies_between() -> None:
    costs = CostModel.fit(ladder())
    for tokens, context, samples in [
        (1, 128, 1),
        (12, 12 * 500, 12),
        (32, 32 * 300, 32),
        (100, 100 * 60, 1),
        (400, 400 * 128, 1),
    ]:
        assert costs.seconds(tokens, context, samples) == pytest.approx(true_seconds(tokens, context, samples), rel=0.06)


def test_a_noisy_ladder_still_gives_a_rising_curve() -> None:
    costs = CostModel([(1, 0.02), (2, 0.01), (4, 0.015), (8, 0.012)], 0.0, 0.0)
    curve = [seconds for _, seconds in costs.curve()]
    assert curve == sorted(curve)


def test_it_follows_a_machine_that_becomes_slower() -> None:
    costs = CostModel.fit(ladder())
    rng = random.Random(1)
    for _ in range(400):
        n = rng.randrange(1, 64)
        costs.observe(Observation(n, n * 200, n, true_seconds(n, n * 200, n, speed=1.7) * rng.uniform(0.95, 1.05)))
    for n in (1, 16, 40, 64):
        assert costs.seconds(n, n * 200, n) == pytest.approx(true_seconds(n, n * 200, n, speed=1.7), rel=0.1)


def test_it_learns_a_part_of_the_curve_that_was_wrong() -> None:
    flat = CostModel([(1, 0.010), (16, 0.011), (64, 0.012)], 0.0, 0.0)
    rng = random.Random(2)
    for _ in range(1500):
        n = rng.choice([1, 4, 16, 24, 48, 64])
        flat.observe(Observation(n, 0, 0, true_seconds(n, 0, 0)))
    assert flat.seconds(64) == pytest.approx(true_seconds(64, 0, 0), rel=0.15)
    assert flat.seconds(4) == pytest.approx(true_seconds(4, 0, 0), rel=0.15)


def test_one_outlier_moves_it_little() -> None:
    costs = CostModel.fit(ladder())
    before = costs.seconds(32, 32 * 200, 32)
    costs.observe(Observation(32, 32 * 200, 32, 100 * before))
    assert costs.seconds(32, 32 * 200, 32) < 1.1 * before


def test_the_error_is_reported() -> None:
    costs = CostModel([(1, 0.01)], 0.0, 0.0)
    assert costs.error() == (0.0, 0.0)
    costs.observe(Observation(1, 0, 0, 0.02))
    assert costs.error()[0] == pytest.approx(1.0)


def test_it_survives_being_written_and_read() -> None:
    costs = CostModel.fit(ladder())
    again = CostModel.from_dict(json.loads(json.dumps(costs.to_dict())))
    assert again.seconds(20, 20 * 99, 20) == pytest.approx(costs.seconds(20, 20 * 99, 20))


observations = st.builds(
    Observation, st.integers(1, 300), st.integers(0, 100_000), st.integers(0, 64), st.floats(1e-4, 1.0, allow_nan=False)
)


@given(st.lists(observations, max_size=60), st.floats(1e-3, 0.5))
def test_any_history_leaves_it_monotone_and_its_inverse_true(history: list[Observation], budget: float) -> None:
    costs = CostModel.fit(ladder())
    for o in history:
        costs.seconds(o.tokens)  # what it once read off its curve must not outlive the curve
        costs.observe(o)
    fresh = CostModel.from_dict(costs.to_dict())
    assert [costs.seconds(n) for n in range(1, 400)] == [costs.drift * fresh.seconds(n) for n in range(1, 400)]
    times = [costs.seconds(n) for n in range(1, 400)]
    assert all(a <= b + 1e-12 for a, b in pairwise(times))
    assert times[0] > 0
    assert costs.per_context >= 0
    assert costs.per_sample >= 0
    n = costs.tokens_within(budget, 300, context_each=100.0, sampled=True)
    assert 0 <= n <= 300
    if n:
        assert costs.seconds(n, n * 100, n) <= budget * (1 + 1e-9)
    if n < 300:
        assert costs.seconds(n + 1, (n + 1) * 100, n + 1) > budget * (1 - 1e-9)
