"""Which paces are promised for given step times."""

from __future__ import annotations

import pytest

from headway.config import FastSettings, ModesSettings, SchedulerSettings, StandardSettings
from headway.errors import UsageError
from headway.runtime.paces import CONTEXT, beside_full_house, modes_from
from headway.scheduler.cost import CostModel

COSTS = CostModel([(1, 0.010), (16, 0.020), (32, 0.030), (64, 0.050)], 1e-7, 0.0)


def test_measured_paces_can_be_kept_by_a_full_house() -> None:
    scheduler = SchedulerSettings(max_rows=32, fast_rows=2, margin=0.2)
    modes = modes_from(COSTS, scheduler, ModesSettings())
    standard, fast = modes.base.pace, modes.fast.pace
    assert fast == pytest.approx(2.5 * standard)
    rows = round(32 / 2.5 + 2)
    step = COSTS.seconds(rows, rows * CONTEXT, rows)
    assert 1 / step >= fast * 1.2
    assert (rows - 2) / step >= 32 * standard * 1.2 * 0.95, "standard's rows in turns, rounding aside"


def test_fast_seats_are_what_can_be_promised_or_fewer_if_so_set() -> None:
    settings = SchedulerSettings(max_rows=32, fast_rows=2)
    modes = modes_from(COSTS, settings, ModesSettings())
    most = modes.fast.max_rows
    assert modes.base.max_rows == 32
    step = COSTS.seconds(most, most * CONTEXT, most)
    assert 1 / step >= modes.fast.pace
    one_more = COSTS.seconds(most + 1, (most + 1) * CONTEXT, most + 1)
    assert 0.9 / one_more < modes.fast.pace
    assert modes_from(COSTS, SchedulerSettings(max_fast_rows=3), ModesSettings()).fast.max_rows == 3


def test_a_full_house_leaves_room_for_the_fast_rows_that_it_was_planned_with() -> None:
    for fast_rows in (1, 2, 6):
        settings = SchedulerSettings(max_rows=32, fast_rows=fast_rows)
        modes = modes_from(COSTS, settings, ModesSettings())
        assert fast_rows <= beside_full_house(COSTS, settings, modes) < modes.fast.max_rows


def test_more_seats_than_a_steps_tokens_are_reckoned_with_as_the_scheduler_does() -> None:
    settings = SchedulerSettings(max_rows=400, max_step_tokens=16)
    fast = ModesSettings(standard=StandardSettings(pace=0.1), fast=FastSettings(pace=0.2))
    assert modes_from(COSTS, settings, fast).fast.max_rows > 16


def test_set_paces_are_taken_as_they_are() -> None:
    modes = modes_from(COSTS, SchedulerSettings(), ModesSettings(standard=StandardSettings(pace=5.0)))
    assert (modes.base.pace, modes.fast.pace) == (5.0, 12.5)
    both = ModesSettings(standard=StandardSettings(pace=5.0), fast=FastSettings(pace=40.0))
    assert modes_from(COSTS, SchedulerSettings(), both).fast.pace == 40.0


def test_a_fast_mode_that_is_no_faster_is_an_error() -> None:
    wrong = ModesSettings(standard=StandardSettings(pace=50.0), fast=FastSettings(pace=40.0))
    with pytest.raises(UsageError, match="must be higher"):
        modes_from(COSTS, SchedulerSettings(), wrong)
