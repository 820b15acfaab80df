"""Intervals hold what they claim to hold."""

from __future__ import annotations

import numpy as np
import pytest

from headway.compare.capability.bootstrap import difference_interval, per_right_interval, rate_interval, share_interval

RUNS = 400


@pytest.mark.parametrize("tasks", [6, 20, 40])
def test_a_share_is_inside_its_interval_in_95_of_100_runs(tasks: int) -> None:
    """On average over shares from 5% to 95%: a single share's coverage jumps with it, because counts are whole numbers."""
    rng = np.random.default_rng(5)
    cache = {right: share_interval([True] * right + [False] * (tasks - right)) for right in range(tasks + 1)}
    inside = total = 0
    for share in np.linspace(0.05, 0.95, 19):
        for right in rng.binomial(tasks, share, RUNS):
            interval = cache[int(right)]
            assert interval is not None
            inside += interval[0] <= share <= interval[1]
            total += 1
    assert 0.935 <= inside / total <= 0.975


def test_seconds_per_right_answer_are_inside_their_interval() -> None:
    rng = np.random.default_rng(6)
    share, tasks, inside, runs = 0.6, 40, 0, 250
    for _ in range(runs):
        seconds = rng.gamma(4.0, 0.5, tasks)  # a mean of 2 s
        interval = per_right_interval(list(seconds), list(rng.random(tasks) < share))
        assert interval is not None
        inside += interval[0] <= 2.0 / share <= interval[1]
    assert 0.91 <= inside / runs <= 0.985


def test_a_difference_is_inside_its_interval() -> None:
    rng = np.random.default_rng(7)
    tasks, inside, runs = 30, 0, 250
    for _ in range(runs):
        luck = rng.random(tasks)  # the same tasks are hard for both
        interval = difference_interval(list(luck < 0.7), list((luck < 0.4) | (rng.random(tasks) < 0.1)))
        assert interval is not None
        inside += interval[0] <= 0.7 - (0.4 + 0.6 * 0.1) <= interval[1]
    assert 0.91 <= inside / runs <= 0.985


def test_a_mistake_rate_is_inside_its_interval() -> None:
    rng = np.random.default_rng(8)
    lengths, rate, inside, runs = np.array([1, 2, 3, 5, 8] * 6), 0.2, 0, 250
    for _ in range(runs):
        done = np.minimum(rng.geometric(rate, lengths.size) - 1, lengths)
        events = (done < lengths).astype(float)
        interval = rate_interval(list(events), list(done + events))
        assert interval is not None
        inside += interval[0] <= rate <= interval[1]
    assert 0.90 <= inside / runs <= 0.985


def test_three_right_answers_are_not_certainty() -> None:
    low, high = share_interval([True] * 3) or (0.0, 0.0)
    assert low < 0.6
    assert high == pytest.approx(1.0, abs=0.01)


def test_the_same_answers_give_the_same_interval() -> None:
    assert share_interval([True, False, True]) == share_interval([True, False, True])


def test_without_answers_or_right_ones_there_is_none() -> None:
    assert share_interval([]) is None
    assert difference_interval([], []) is None
    assert per_right_interval([1.0, 2.0], [False, False]) is None
    assert rate_interval([], []) is None
