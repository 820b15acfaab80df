"""compose: what rides in a step, in situations set up by hand."""

from __future__ import annotations

import statistics

import pytest
from machine import Machine, costs, speed

from headway.modes import ModeName
from headway.scheduler.compose import compose
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes

SIZES = StepSizes(costs())
FAST, STANDARD = ModeName.FAST, ModeName.STANDARD


def decoding(
    name: str, mode: ModeName, pace: float, *, credit: float = 2.0, now: float = 100.0, service: float = 0.0
) -> Request:
    """A request in mid-output with `credit` tokens to its credit at `now`."""
    r = Request(name, mode, pace, 0.0, 1.0, list(range(50)), 1000)
    r.tokens += [7] * 20
    r.num_computed = len(r.tokens) - 1
    r.first_token_at = now - (19 - credit) / pace
    r.service = service
    return r


def prefilling(name: str, n: int, deadline: float, mode: ModeName = STANDARD) -> Request:
    return Request(name, mode, 13.0, 0.0, deadline, list(range(n)), 100)


def names(requests: list[Request]) -> set[str]:
    return {r.id for r in requests}


def test_nothing_to_do_is_an_empty_step() -> None:
    assert compose([], costs(), SIZES, 0.0, Limits()).rows == []


def test_without_a_tight_pace_everybody_rides() -> None:
    rows = [decoding(f"s{i}", STANDARD, 13.0) for i in range(32)]
    step = compose(rows, costs(), SIZES, 100.0, Limits())
    assert len(step.rows) == 32
    assert step.forced_by == []


def test_a_fast_row_rides_always_and_the_others_take_turns() -> None:
    rows = [decoding(f"s{i}", STANDARD, 13.0, service=float(i)) for i in range(32)] + [decoding("f", FAST, 32.5)]
    step = compose(rows, costs(), SIZES, 100.0, Limits())
    riders = names([row.request for row in step.rows])
    assert "f" in riders
    assert 8 <= len(riders) <= 14
    assert riders - {"f"} == {f"s{i}" for i in range(len(riders) - 1)}, "least service goes first"
    assert names(step.forced_by) == {"f"}


def test_a_late_standard_row_goes_before_those_with_credit() -> None:
    rows = [decoding(f"s{i}", STANDARD, 13.0, service=0.0) for i in range(31)]
    rows += [decoding("late", STANDARD, 13.0, credit=-3.0, service=99.0), decoding("f", FAST, 32.5)]
    step = compose(rows, costs(), SIZES, 100.0, Limits())
    assert "late" in names([row.request for row in step.rows])


def test_a_step_is_no_longer_than_the_fast_rows_credit_allows() -> None:
    limits = Limits()
    prompt = prefilling("p", 4000, 100.1)
    for credit in (-5.0, 0.0, 1.0, 3.0, 50.0):
        rows = [decoding(f"s{i}", STANDARD, 13.0) for i in range(20)] + [decoding("f", FAST, 32.5, credit=credit), prompt]
        step = compose(rows, costs(), SIZES, 100.0, limits)
        allowed = min(limits.longest, max(limits.shortest, credit + 1 - limits.reserve)) / 32.5
        assert step.predicted - step.changes * costs().change <= allowed * 1.1
        assert any(row.request is prompt for row in step.rows), "a waiting prompt always gets on"


def test_nobody_starves_even_when_a_fast_row_is_hopelessly_late() -> None:
    rows = [decoding(f"s{i}", STANDARD, 13.0) for i in range(32)] + [decoding("f", FAST, 500.0, credit=-1000.0)]
    step = compose(rows, costs(), SIZES, 100.0, Limits())
    assert len(step.rows) >= 2


def test_the_prompt_due_first_goes_first() -> None:
    step = compose([prefilling("b", 400, 2.0), prefilling("a", 400, 1.0)], costs(), SIZES, 0.0, Limits())
    assert [row.request.id for row in step.rows] == ["a"]
    assert step.rows[0].num_tokens == 256
    assert not step.rows[0].samples


def test_a_fast_prompt_and_one_with_a_promise_go_before_standard_ones_that_are_late_already() -> None:
    late = [prefilling(f"s{i}", 200, 2.0 + i) for i in range(3)]
    fast, promised = prefilling("f", 60, 50.3, FAST), prefilling("p", 60, 50.2)
    promised.promises_ttft = True
    step = compose([*late, fast, promised], costs(), SIZES, 50.0, Limits())
    assert [row.request.id for row in step.rows][:3] == ["p", "f", "s0"]


def test_rows_that_take_turns_keep_their_lead_from_a_prompt_that_is_late() -> None:
    prompt, fast = prefilling("p", 4000, 90.0), decoding("f", FAST, 32.5)
    for credit, riders in ((0.8, 4), (3.0, 1)):
        rows = [decoding(f"s{i}", STANDARD, 13.0, credit=credit) for i in range(4)]
        step = compose([*rows, fast, prompt], costs(), SIZES, 100.0, Limits())
        assert sum(row.request in rows for row in step.rows) == riders
        assert any(row.request is prompt for row in step.rows)


def test_the_last_size_is_given_up_at_once_where_a_fast_rows_next_token_would_wait_for_it() -> None:
    sizes = StepSizes(costs())
    sizes.take(16, 16)
    for credit, size in ((0.0, 4), (30.0, 16)):
        step = compose([decoding("f", FAST, 45.0, credit=credit)], costs(), sizes, 100.0, Limits())
        assert step.size == size
        assert step.changes == (size != 16)


def test_small_prompts_share_a_step() -> None:
    step = compose([prefilling("b", 40, 2.0), prefilling("a", 50, 1.0)], costs(), SIZES, 0.0, Limits())
    assert [(row.request.id, row.num_tokens, row.samples) for row in step.rows] == [("a", 50, True), ("b", 40, True)]


def test_the_efficiency_floor_keeps_steps_from_getting_too_small() -> None:
    rows = [decoding(f"s{i}", STANDARD, 1.0) for i in range(32)] + [decoding("f", FAST, 20.0)]
    model = costs()

    def rate(n: int) -> float:
        return n / model.seconds(n, n * 70, n)

    step = compose(rows, model, StepSizes(model), 100.0, Limits(efficiency_floor=0.6))
    assert rate(len(step.rows)) >= 0.6 * rate(33)
    assert len(compose(rows, model, StepSizes(model), 100.0, Limits(efficiency_floor=0.0)).rows) < len(step.rows)


def test_rows_that_a_knee_makes_free_ride_along() -> None:
    flat = costs().__class__([(1, 0.010), (2, 0.0101), (16, 0.010101), (17, 0.030), (64, 0.060)], 0.0, 0.0)
    rows = [decoding(f"s{i}", STANDARD, 1.0) for i in range(40)] + [decoding("f", FAST, 50.0)]
    assert len(compose(rows, flat, StepSizes(flat), 100.0, Limits(efficiency_floor=0.0)).rows) == 16


@pytest.mark.parametrize("noise", [0.0, 0.15])
@pytest.mark.parametrize(("num_standard", "speed_x"), [(32, 2.5), (16, 2.0)])
def test_a_fast_stream_beside_standard_ones_is_faster_by_its_factor(num_standard: int, speed_x: float, noise: float) -> None:
    m = Machine(noise=noise)
    fast: list[Request] = []

    def keep_full() -> None:
        while sum(m.scheduler.count(STANDARD)) < num_standard:
            m.request(STANDARD, out=96)
        if m.scheduler.count(FAST) == (0, 0):
            fast.append(m.request(FAST, out=96))

    m.run(40.0, keep_full)
    done = [r for r in m.finished if r.mode is FAST]
    standard = statistics.median(speed(r) for r in m.finished if r.mode is STANDARD)
    assert statistics.median(map(speed, done)) >= speed_x * standard  # with few rows the efficiency floor limits it
    assert sum(r.num_on_time for r in done) >= 0.99 * sum(r.num_output - 1 for r in done)
    with_fast = m.num_tokens / m.now

    alone = Machine(noise=noise)

    def keep_full_alone() -> None:
        while sum(alone.scheduler.count(STANDARD)) < num_standard:
            alone.request(STANDARD, out=96)

    alone.run(40.0, keep_full_alone)
    assert with_fast >= 0.6 * alone.num_tokens / alone.now


def test_standard_keeps_its_pace_with_a_full_house() -> None:
    m = Machine()

    def keep_full() -> None:
        while sum(m.scheduler.count(STANDARD)) < 32:
            m.request(STANDARD, out=96)
        while sum(m.scheduler.count(FAST)) < 2:
            m.request(FAST, out=96)

    m.run(30.0, keep_full)
    for mode in (STANDARD, FAST):
        done = [r for r in m.finished if r.mode is mode]
        assert sum(r.num_on_time for r in done) >= 0.95 * sum(r.num_output - 1 for r in done)


def test_a_long_prompt_makes_no_fast_row_late() -> None:
    m = Machine()
    fast = m.request(FAST, out=300)
    for _ in range(10):
        m.step()
    m.request(STANDARD, prompt=6000, out=4)
    m.run_dry()
    assert fast.attainment >= 0.99


def test_what_would_be_padding_carries_prompt_tokens_but_not_those_of_a_long_context() -> None:
    """A size that the last step had is kept: a short prompt fills it at no cost, one that attends to thousands does not."""
    rows = [decoding("f", FAST, 32.5, credit=5.0)]
    for computed, filled in ((0, True), (4000, False)):
        sizes = StepSizes(costs())
        sizes.take(28, 28)
        prompt = prefilling("p", 8000, 1000.0)
        prompt.num_computed = computed
        step = compose([*rows, prompt], costs(), sizes, 100.0, Limits())
        chunk = sum(row.num_tokens for row in step.rows if row.request is prompt)
        assert (step.num_tokens == step.size) == filled
        assert chunk >= 1
        if not filled:
            assert step.predicted <= 1.3 / 32.5


def test_a_long_prompt_alone_goes_in_steps_short_enough_for_a_newcomer() -> None:
    prompt = prefilling("p", 8000, 1000.0)
    assert compose([prompt], costs(), SIZES, 0.0, Limits()).num_tokens == 256
    prompt.num_computed = 7000
    step = compose([prompt], costs(), SIZES, 0.0, Limits())
    assert 32 <= step.num_tokens < 64
    assert step.predicted <= 0.3
