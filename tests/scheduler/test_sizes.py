"""Sizes of steps: they change rarely and waste little."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headway.scheduler.cost import CostModel
from headway.scheduler.sizes import ANY_SIZE, Grid, StepSizes

GRID = Grid(((64, 4), (256, 16)))
COSTS = CostModel([(4, 0.011), (260, 0.267)], 0.0, 0.0, per_change=0.005, grid=GRID)
"""A millisecond a token, five for a change."""


def sized(loads: list[int], costs: CostModel = COSTS) -> list[int]:
    sizes = StepSizes(costs)
    given = []
    for needed in loads:
        given.append(sizes.fit(needed))
        sizes.take(needed, given[-1])
    return given


def test_the_grid() -> None:
    assert [GRID.up(n) for n in (1, 4, 5, 64, 65, 256, 257)] == [4, 4, 8, 64, 80, 256, 272]
    assert [ANY_SIZE.up(n) for n in (1, 7, 300)] == [1, 7, 300]


def test_a_steady_load_is_not_padded_beyond_the_grid() -> None:
    assert sized([4, 4, 4]) == [4, 4, 4]
    assert sized([32, 32]) == [32, 32]


def test_a_load_that_wavers_keeps_its_size() -> None:
    assert set(sized([36, 33, 30, 36, 31, 35, 36, 35] * 4)) == {36}


def test_a_smaller_load_gets_its_smaller_size_after_a_while() -> None:
    assert sized([8, 3, 3, 3, 3]) == [8, 8, 8, 4, 4]


def test_a_much_smaller_load_gets_it_at_once() -> None:
    assert sized([256, 32]) == [256, 32]


def test_where_a_change_costs_nothing_nothing_is_wasted() -> None:
    loads = [17, 3, 200, 1]
    assert sized(loads, CostModel([(1, 0.01), (256, 0.2)], 0.0, 0.0)) == loads


@given(st.lists(st.integers(1, 400), min_size=1, max_size=20), st.integers(1, 400))
def test_a_settled_size_stays_for_good(loads: list[int], then: int) -> None:
    sizes = StepSizes(COSTS)
    for needed in loads:
        sizes.take(needed, sizes.fit(needed))
    settled, size = sizes.settled(then), sizes.size
    seen = set()
    for _ in range(50):
        seen.add(sizes.fit(then))
        sizes.take(then, sizes.fit(then))
    assert settled == (seen == {size})


@given(st.lists(st.integers(1, 400), min_size=1, max_size=200))
def test_every_step_fits_and_none_wastes_more_than_the_changes_it_saves(loads: list[int]) -> None:
    for needed, size in zip(loads, sized(loads), strict=True):
        assert needed <= size
        assert size == GRID.up(size)
        assert COSTS.seconds(size) - COSTS.seconds(needed) <= 2 * COSTS.change + 1e-9
    spent = sum(COSTS.seconds(size) for size in sized(loads)) + COSTS.change * sum(a != b for a, b in pairwise(sized(loads)))
    always = sum(COSTS.seconds(needed) for needed in loads) + COSTS.change * sum(
        GRID.up(a) != GRID.up(b) for a, b in pairwise(loads)
    )
    assert spent <= 2 * always


@given(st.integers(1, 300), st.integers(1, 300))
def test_asking_changes_nothing(first: int, asked: int) -> None:
    sizes = StepSizes(COSTS)
    sizes.take(first, sizes.fit(first))
    before = sizes.fit(asked)
    for n in range(1, 300):
        sizes.fit(n)
    assert sizes.fit(asked) == before
