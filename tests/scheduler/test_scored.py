"""Prompts that are scored: each place once, in small parts, whatever happens."""

from __future__ import annotations

from collections import Counter

import pytest
from machine import Machine

from headway.modes import ModeName
from headway.scheduler.request import MAX_SCORED, Request

STANDARD, FAST = ModeName.STANDARD, ModeName.FAST


def score(m: Machine, r: Request, most: int = 2000) -> list[int]:
    """Runs until `r` has its first token; the places scored, in order."""
    places: list[int] = []
    for _ in range(most):
        step = m.scheduler.plan(m.now)
        assert step is not None
        for row in step.rows:
            if row.request is r:
                assert row.num_tokens <= MAX_SCORED or not r.to_score
                end = min(r.num_computed + row.num_tokens, r.num_prompt - 1)
                places += range(end - row.num_scored, end)
        assert step.num_samples == sum(row.num_samples for row in step.rows)
        m.memory.run(step)
        m.now += step.predicted
        m.scheduler.complete(step, m.sample(step), m.now, step.predicted)
        if r.first_token_at is not None:
            return places
    raise AssertionError("it never had its first token")


def scored(m: Machine, mode: ModeName, prompt: list[int]) -> Request:
    r = m.request(mode, prompt=list(prompt), out=4)
    r.scored = True
    return r


@pytest.mark.parametrize("mode", [STANDARD, FAST])
@pytest.mark.parametrize("beside", [0, 6])
def test_each_place_is_scored_once_and_in_order(mode: ModeName, beside: int) -> None:
    m = Machine()
    for _ in range(beside):
        m.request(out=400)
    m.run(1.0)
    prompt = m.random_tokens(601)
    for _ in range(2):
        r = scored(m, mode, prompt)
        assert score(m, r) == list(range(600))
        assert r.num_cached == 0, "the likelihoods behind what is cached can't be known"
    after = m.request(prompt=list(prompt), out=4)
    score(m, after)
    assert after.num_cached > 500, "others have use of what was computed"


def test_one_token_has_nothing_to_be_scored() -> None:
    m = Machine()
    assert score(m, scored(m, STANDARD, [7])) == []


def test_an_eviction_costs_no_place_and_scores_none_twice() -> None:
    m = Machine(num_blocks=24, block_size=8)
    r = scored(m, STANDARD, m.random_tokens(150))
    places: list[int] = []
    evictions = 0
    for n in range(2000):
        if n in (2, 9):
            m.request(FAST, prompt=100, out=20)
        step = m.scheduler.plan(m.now)
        if step is None or r.first_token_at is not None:
            break
        for row in step.rows:
            if row.request is r:
                end = min(r.num_computed + row.num_tokens, r.num_prompt - 1)
                places += range(end - row.num_scored, end)
        m.memory.run(step)
        m.now += step.predicted
        m.scheduler.complete(step, m.sample(step), m.now, step.predicted)
        evictions = m.scheduler.num_evicted
    assert evictions > 0, "this history doesn't test what it is meant to"
    assert Counter(places) == Counter(range(149)) and places == sorted(places)


def test_steps_leave_time_for_the_logits() -> None:
    """A fast row's steps stay within its pace though each token of the prompt beside it costs a row of logits."""
    m = Machine(fast=20.0)
    fast = m.request(FAST, out=300)
    m.run(0.5)
    for known in (m.scheduler.costs, m.true):
        known.per_sample = 0.001
    scored(m, STANDARD, m.random_tokens(1500))
    m.run(2.0)
    assert fast.attainment == 1.0 and fast.num_output > 30
