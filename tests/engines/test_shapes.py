"""Padding of steps: sizes change rarely and waste little."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.engines.shapes import CHANGE, WINDOW, StickySize


def test_a_steady_load_is_not_padded_beyond_the_scale() -> None:
    sizes = StickySize()
    assert [sizes.fit(n) for n in (4, 4, 4)] == [4, 4, 4]
    assert [sizes.fit(n) for n in (32, 32)] == [32, 32]


def test_a_load_that_wavers_keeps_its_size() -> None:
    sizes = StickySize()
    assert {sizes.fit(n) for n in [36, 30, 33, 36, 31, 35, 29, 36] * 4} == {36}


def test_a_smaller_load_gets_its_smaller_size_after_a_while() -> None:
    sizes = StickySize()
    sizes.fit(12)
    assert [sizes.fit(3) for _ in range(WINDOW)] == [12] * (WINDOW - 1) + [4]


def test_a_much_smaller_load_gets_it_at_once() -> None:
    sizes = StickySize()
    sizes.fit(256)
    assert sizes.fit(32) == 32


@given(st.lists(st.integers(1, 400), min_size=1, max_size=200))
def test_every_step_fits_and_none_wastes_more_than_a_change_costs(loads: list[int]) -> None:
    sizes = StickySize()
    for n in loads:
        size = sizes.fit(n)
        assert n <= size <= n + max(16, CHANGE + 4)
