"""Where weights stay."""

from __future__ import annotations

import pytest

from headway.calibrate.residency import Residency, residencies


@pytest.mark.parametrize(
    ("gb_s", "far", "words"),
    [
        (42.0, 19.0, "34 MB of weights a step, stays in cache (42 GB/s: at least 0.8 ms a step)"),
        (19.5, 19.0, "34 MB of weights a step, does not stay in cache (20 GB/s: at least 1.7 ms a step)"),
    ],
)
def test_it_says_where_and_what_that_means(gb_s: float, far: float, words: str) -> None:
    assert str(Residency(34_000_000, gb_s, far)) == words


def test_it_is_measured_for_each_size() -> None:
    small, large = residencies([1_000_000, 200_000_000], threads=1)
    assert (small.bytes, large.bytes) == (1_000_000, 200_000_000)
    assert small.far_gb_s == large.far_gb_s > 0
    assert min(small.gb_s, large.gb_s) > 0
