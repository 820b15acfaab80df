"""First tokens that wait for the second: a row has a token of lead from the start where its next step may be a long one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine import Machine

from headway.modes import ModeName
from headway.scheduler.request import Request

STANDARD, FAST = ModeName.STANDARD, ModeName.FAST


def busy(others: int = 24) -> Machine:
    m = Machine()
    for _ in range(others):
        m.request(out=400)
    m.run(2.0)
    return m


def until_first(m: Machine, r: Request) -> float:
    while not r.num_output:
        m.step()
    return m.now


def test_beside_many_the_first_token_waits_for_the_second_and_so_does_the_clock() -> None:
    m = busy()
    r = m.request(FAST, out=40)
    came = until_first(m, r)
    assert r.held
    while r.num_output < 2:
        m.step()
    assert not r.held
    assert r.first_token_at == r.last_token_at == m.now > came
    assert (r.num_on_time, r.credit(m.now)) == (1, pytest.approx(1.0))
    m.run_dry()
    assert r.attainment == 1.0 and r.num_output == 40


def test_where_there_is_little_to_do_it_doesn_t_wait() -> None:
    m = busy(others=2)
    r = m.request(FAST, out=40)
    assert until_first(m, r) == r.first_token_at
    assert not r.held


def test_it_doesn_t_wait_where_that_might_cost_its_deadline() -> None:
    m = busy()
    r = m.request(FAST, out=40)
    until_first(m, r)
    for left, waits in ((-0.1, True), (0.0, False), (0.9 / r.pace, False), (1.1 / r.pace, True)):
        r.ttft_deadline = m.now + left
        assert m.scheduler._should_wait(r, m.now) == waits


def test_a_first_token_that_is_the_last_waits_for_nothing() -> None:
    m = busy()
    r = m.request(FAST, out=1)
    assert until_first(m, r) == r.first_token_at
    assert r in m.finished and not r.held


def test_steps_that_take_twice_as_long_make_no_second_token_late() -> None:
    """Each step after a first token takes 1.9 times what was predicted; without waiting, that would be too late."""
    kept = {}
    for hold in (0.4, 1e9):
        m = busy()
        m.scheduler.limits = replace(m.scheduler.limits, hold=hold)
        requests = []
        for _ in range(8):
            r = m.request(FAST, out=12)
            requests.append(r)
            until_first(m, r)
            step = m.scheduler.plan(m.now)
            assert step is not None and r in [row.request for row in step.rows]
            m.memory.run(step)
            m.now += 1.9 * step.predicted
            m.scheduler.complete(step, m.sample(step), m.now, 1.9 * step.predicted)
            m.run(1.0)
        kept[hold] = [r.attainment == 1.0 for r in requests]
    assert all(kept[0.4])
    assert not any(kept[1e9])
