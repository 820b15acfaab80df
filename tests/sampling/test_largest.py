"""The n largest, beside plain sorting."""

from __future__ import annotations

import numpy as np
import pytest

from headway.sampling.largest import largest, lower_bound


@pytest.mark.parametrize("size", [1, 7, 256, 1000, 49_152])
@pytest.mark.parametrize("n", [1, 5, 100, 400, 60_000])
@pytest.mark.parametrize("ties", [False, True])
def test_they_are_those_of_a_stable_sort(size: int, n: int, ties: bool) -> None:
    row = np.random.default_rng(size + n).standard_normal(size).astype(np.float32)
    if ties:
        row = np.round(row)
    assert largest(row, n).tolist() == np.argsort(-row, kind="stable")[:n].tolist()
    assert np.count_nonzero(row >= lower_bound(row, n)) >= min(n, size)


def test_the_bound_leaves_few_more_than_asked_for() -> None:
    row = np.random.default_rng(1).standard_normal(49_152).astype(np.float32)
    for n in (1, 40, 400, 5000):
        assert np.count_nonzero(row >= lower_bound(row, n)) < 2 * n + 10
