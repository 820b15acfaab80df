"""Ranks, masses and where a mass is reached, beside plain sorting."""

from __future__ import annotations

import numpy as np
import pytest

from headway.sampling.ranked import Ranked


@pytest.mark.parametrize("size", [1, 2, 1000, 20_000])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 3.0, 40.0])
def test_it_tells_what_sorting_would_tell(size: int, spread: float) -> None:
    generator = np.random.default_rng(size)
    values = np.exp(-spread * generator.exponential(1.0, size)).astype(np.float32)
    ordered = np.sort(values)[::-1]
    cumulative = ordered.cumsum(dtype=np.float64)
    ranked = Ranked(values)
    for rank in {0, size // 3, size // 2, size - 1}:
        assert ranked[rank] == ordered[rank]
        assert ranked.mass(rank + 1) == pytest.approx(cumulative[rank], rel=1e-12)
    for share in (0.0, 1e-6, 0.3, 0.7, 0.99):
        mass = share * cumulative[-1]
        assert ranked.reach(mass, "left") == min(int(cumulative.searchsorted(mass, "left")), size - 1)
        assert ranked.reach(mass, "right") == min(int(cumulative.searchsorted(mass, "right")), size - 1)
    assert ranked.reach(2.0 * cumulative[-1] + 1.0, "left") == size - 1


def test_zeros_come_last() -> None:
    values = np.zeros(5000, np.float32)
    values[[10, 4000]] = 1.0, 0.5
    ranked = Ranked(values)
    assert (ranked[0], ranked[1], ranked[2]) == (1.0, 0.5, 0.0)
    assert ranked.reach(1.2, "right") == 1
    assert ranked.mass(5000) == 1.5
