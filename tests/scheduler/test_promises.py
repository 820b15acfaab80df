"""What can be promised, and that nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine, costs

from headway.modes import ModeName
from headway.scheduler.admission import Refused
from headway.scheduler.promises import HEADROOM, Demand, Paced, Promises, paced
from headway.scheduler.request import Request

FAST, STANDARD = ModeName.FAST, ModeName.STANDARD
PACES = st.floats(1.0, 80.0)
ROWS = st.lists(st.builds(Paced, PACES, st.floats(1, 4000)), max_size=40)


def attainment(requests: Sequence[Request]) -> float:
    return sum(r.num_on_time for r in requests) / sum(r.num_output - 1 for r in requests)


def ttft(r: Request) -> float:
    assert r.first_token_at is not None
    return r.first_token_at - r.arrival


def promises() -> Promises:
    return Promises(costs(), 256)


def test_nobody_takes_no_time_and_one_row_takes_its_steps() -> None:
    assert promises().share(Demand()) == 0.0
    assert promises().share(Demand.of([Paced(20.0, 100)])) == pytest.approx(20 * costs().seconds(1, 100, 1))


def test_rows_of_a_lower_pace_ride_in_their_share_of_the_steps() -> None:
    rows = [Paced(40.0, 0)] * 4 + [Paced(10.0, 0)] * 16
    assert promises().share(Demand.of(rows)) == pytest.approx(40 * costs().seconds(8, 0, 8))


@given(ROWS, PACES, st.floats(1, 4000))
def test_more_rows_take_no_less_time(rows: list[Paced], pace: float, context: float) -> None:
    """With one of a higher pace than all others the steps are other steps, and may be of a better size."""
    pace = min([pace, *(row.pace for row in rows)])
    assert promises().share(Demand.of([*rows, Paced(pace, context)])) >= promises().share(Demand.of(rows)) * (1 - 1e-6)


def test_most_is_the_largest_number_that_holds() -> None:
    p, fast = promises(), Paced(32.5, 200)
    beside = [Paced(13.0, 200)] * 32
    most = p.most(fast, beside)
    assert most >= 2
    assert p.hold(Demand.of([*beside, *[fast] * most]))
    assert not p.hold(Demand.of([*beside, *[fast] * (most + 1)]))
    assert p.most(fast) > most
    assert p.most(Paced(1e6, 10)) == 0


def test_fast_is_refused_when_one_more_would_break_a_promise_and_the_wait_told_is_true() -> None:
    m = Machine(fast_rows=100, fast_waiting=0)
    admitted: list[Request] = []
    with pytest.raises(Refused, match=r"32\.5 tokens/s can't be promised now beside the \d+ requests") as refused:
        for _ in range(100):
            admitted.append(Request(f"f{len(admitted)}", FAST, 32.5, 0.0, 0.3, [1] * 10, 65))
            m.scheduler.add(admitted[-1], 0.0)
    assert 10 < len(admitted) < 60
    wait = refused.value.retry_after
    assert wait == pytest.approx(65 / 32.5)
    while m.now < wait:
        m.step()
    m.request(FAST, out=5)


def test_the_wait_told_is_until_enough_of_those_who_leave_first_have_left() -> None:
    m = Machine(fast_rows=100, fast_waiting=0)
    with pytest.raises(Refused) as refused:
        for number in range(100):
            m.request(FAST, out=10 * (number % 7 + 1))
    running = sorted(m.scheduler.running(), key=lambda r: r.max_tokens)
    newcomer = Paced(32.5, 60 + 10 / 2)
    for number, leaving in enumerate(running, start=1):
        left = [Paced(r.pace, 60 + r.max_tokens / 2) for r in running[number:]]
        if m.scheduler.promises.hold(Demand.of([*left, newcomer])):
            assert refused.value.retry_after == pytest.approx(leaving.max_tokens / 32.5)
            return
    raise AssertionError("one that has left makes room for one")


def test_standard_waits_while_a_seat_for_it_would_break_a_promise() -> None:
    m = Machine(max_rows=200, fast_rows=100)
    for _ in range(15):
        m.request(FAST, out=100)
    for _ in range(60):
        m.request(STANDARD, out=40)
    m.step()
    running, waiting = m.scheduler.count(STANDARD)
    assert running + waiting == 60
    assert waiting > 0
    assert m.scheduler.promises.share(Demand.of([Paced(32.5, 60)] * 15 + [Paced(13.0, 60)] * running)) < 1.0
    m.run_dry()
    assert len(m.finished) == 75, "all of them in the end"


def test_every_fast_request_that_comes_in_keeps_its_pace_at_three_times_the_capacity() -> None:
    m = Machine(fast_rows=100, max_rows=32, waiting=40, fast_waiting=0, noise=0.05)
    refused = {FAST: 0, STANDARD: 0}
    due = 0.0

    def arrive() -> None:
        nonlocal due
        while due <= m.now:
            mode = FAST if m.rng.random() < 0.1 else STANDARD
            try:
                m.request(mode, prompt=60, out=m.rng.randrange(16, 120))
            except Refused as no:
                assert 0 < no.retry_after <= 60
                refused[mode] += 1
            due += m.rng.expovariate(20.0)

    m.run(120.0, arrive)
    done = [r for r in m.finished if r.mode is FAST]
    assert len(done) > 50
    assert refused[STANDARD] > 100
    assert attainment(done) >= 0.995
    assert median(ttft(r) for r in done) < 0.3, "whatever standard's prompts are late by"
    standard = [r for r in m.finished if r.mode is STANDARD]
    assert len(standard) > 200
    assert attainment(standard) >= 0.99
    assert sum(r.attainment >= 0.99 for r in standard) > 0.9 * len(standard)
    m.run_dry()
    m.pool.check()
    assert m.pool.num_free == m.pool.num_blocks


def test_a_promised_first_token_comes_in_time_or_is_refused() -> None:
    m = Machine()
    for _ in range(20):
        m.request(STANDARD, out=200)
    for _ in range(60):
        m.step()
    late = Request("late", STANDARD, 13.0, m.now, m.now + 0.2, m.random_tokens(6000), 5, promises_ttft=True)
    with pytest.raises(Refused, match=r"a first token within 0\.20 s can't be promised"):
        m.scheduler.add(late, m.now)
    for number in range(10):
        allowed = 1.5
        r = Request(f"p{number}", STANDARD, 13.0, m.now, m.now + allowed, m.random_tokens(200), 5, promises_ttft=True)
        m.scheduler.add(r, m.now)
        for _ in range(60):
            m.step()
        assert r.first_token_at is not None
        assert r.first_token_at - r.arrival <= allowed


def test_demand_of_requests_is_that_of_their_rows() -> None:
    m = Machine()
    requests = [m.request(mode, prompt=n, out=10 * n) for n, mode in enumerate((STANDARD, FAST, STANDARD, STANDARD), start=40)]
    m.run(1.0)
    assert Demand.of_requests(requests) == Demand.of([paced(r) for r in requests])
    assert Demand.of_requests([]) == Demand()


def test_the_share_that_is_promised_leaves_headroom() -> None:
    fast = Paced(32.5, 200)
    assert promises().share(Demand().plus(fast, promises().most(fast))) <= 1.0 - HEADROOM
