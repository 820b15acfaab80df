"""The scheduler over any history: no block is lost, no row outgrows its context, everybody ends, the bill adds up."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import Machine, costs

from headway.modes import SPEEDS, ModeName
from headway.scheduler.admission import Refused
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, Step, fit

FAST, STANDARD = ModeName.FAST, ModeName.STANDARD


def test_a_request_runs_from_prompt_to_end() -> None:
    m = Machine()
    r = m.request(prompt=100, out=5)
    m.run_dry()
    assert r.num_output == 5
    assert m.finished == [r]
    assert m.pool.num_free == m.pool.num_blocks
    assert r.engine_seconds == pytest.approx(m.device_seconds)


def test_a_stop_token_ends_it_but_not_before_min_tokens() -> None:
    m = Machine()
    m.next_token = lambda request, offset: 7
    early = m.request(out=50)
    early.stop_tokens = frozenset({7})
    late = m.request(out=50)
    late.stop_tokens, late.min_tokens = frozenset({7}), 3
    m.run_dry()
    assert early.num_output == 1
    assert late.num_output == 4


def test_the_same_prompt_again_is_found_in_the_cache_whatever_the_mode() -> None:
    m = Machine()
    prompt = list(range(200))
    first = m.request(STANDARD, prompt=prompt, out=3)
    m.run_dry()
    second = m.request(FAST, prompt=prompt, out=3)
    m.run_dry()
    assert first.num_cached == 0
    assert second.num_cached == 192
    assert second.num_output == 3


def test_the_beginning_of_a_block_is_copied_where_whole_blocks_end() -> None:
    m = Machine()
    head = list(range(1000, 1024))
    first = m.request(STANDARD, prompt=[*head, *range(40)], out=3)
    m.run_dry()
    second = m.request(FAST, prompt=[*head, *range(100, 140)], out=3)
    step = m.step()
    assert step is not None
    assert [copy.num_tokens for copy in step.copies] == [24]
    assert step.copies[0].destination == second.blocks[0]
    assert [row.num_tokens for row in step.rows] == [40]
    m.run_dry()
    again = m.request(STANDARD, prompt=[*head, *range(100, 110), 7, 7, 5], out=3)
    m.run_dry()
    assert (first.num_cached, second.num_cached, again.num_cached) == (0, 24, 32)


def test_a_source_that_its_own_plan_hands_out_again_is_copied_first() -> None:
    m = Machine(num_blocks=4, block_size=8)
    head = [1, 2, 3, 4, 5, 6]
    m.request(prompt=[*head, 90, 91, 92], out=1)
    m.run_dry()
    # Its one cached block is the last to be handed out: to the second request, whose copy is made after that of the first.
    a = m.request(prompt=[*head, 80, 81, 82], out=4)
    b = m.request(prompt=[*head, 70, 71, 72], out=4)
    step = m.step()
    assert step is not None
    assert len(step.copies) == 2
    assert step.copies[0].source in {step.copies[1].destination, *a.blocks, *b.blocks}
    m.run_dry()
    assert (a.num_cached, b.num_cached) == (6, 6)
    assert a.num_output == b.num_output == 4


def test_an_evicted_request_comes_back_by_a_copy_too() -> None:
    m = Machine(num_blocks=40, block_size=8)
    r = m.request(prompt=[1] * 20, out=10)
    m.request(prompt=[1] * 40, out=1)
    m.step()
    m.scheduler._evict(r)
    step = m.step()
    assert step is not None
    assert [copy.num_tokens for copy in step.copies] == [4]
    assert [(row.request, row.num_tokens) for row in step.rows] == [(r, 1)]
    m.run_dry()
    assert r.num_output == 10
    assert r.num_cached == 0, "what it finds again of its own doesn't count"


def test_seats_and_queue_are_bounded_and_the_wait_is_told() -> None:
    m = Machine(max_rows=2, waiting=3)
    for _ in range(5):
        m.request(out=26)
    with pytest.raises(Refused) as refused:
        m.request()
    assert refused.value.retry_after > 0
    m.run_dry()
    m.request()
    m.run_dry()
    assert len(m.finished) == 6


def test_a_full_standard_house_does_not_keep_fast_out() -> None:
    m = Machine(max_rows=2, waiting=0)
    m.request(out=500)
    m.request(out=500)
    fast = m.request(FAST, out=10)
    while not m.finished:
        m.step()
    assert m.finished == [fast]


def test_what_can_never_fit_is_refused() -> None:
    m = Machine(num_blocks=4)
    with pytest.raises(ValueError, match="more blocks"):
        m.request(prompt=100, out=100)


def test_short_memory_evicts_the_latest_standard_row_and_all_still_end() -> None:
    m = Machine(num_blocks=12, block_size=8)
    requests = [m.request(prompt=20, out=40) for _ in range(4)]
    fast = m.request(FAST, prompt=20, out=40)
    m.run_dry()
    assert m.scheduler.num_evicted > 0
    assert all(r.num_output == 40 for r in [*requests, fast])
    assert m.pool.num_free == m.pool.num_blocks
    m.pool.check()


def test_cancelling_a_request_of_the_running_step_gives_it_nothing() -> None:
    m = Machine()
    r = m.request(out=50)
    m.step()
    step = m.scheduler.plan(m.now)
    assert step is not None
    before = r.num_output
    m.scheduler.cancel(r.id)
    assert m.scheduler.complete(step, [[7]], m.now + 0.01, 0.01) == []
    assert r.num_output == before
    assert r.engine_seconds > 0
    assert m.pool.num_free == m.pool.num_blocks
    assert m.scheduler.cancel(r.id) is None


def test_fast_pays_for_the_seats_that_leave_empty() -> None:
    m = Machine()
    done: list[Request] = []

    def keep_full() -> None:
        while sum(m.scheduler.count(STANDARD)) < 32:
            m.request(STANDARD, out=64)
        if m.scheduler.count(FAST) == (0, 0):
            done.append(m.request(FAST, out=64))

    m.run(20.0, keep_full)

    def per_token(mode: ModeName) -> float:
        rows = [r for r in m.finished if r.mode is mode]
        return sum(r.engine_seconds for r in rows) / sum(r.num_output for r in rows)

    assert 2.0 < per_token(FAST) / per_token(STANDARD) < 20.0


arrivals = st.tuples(
    st.sampled_from(["add", "add", "add", "step", "step", "step", "step", "cancel", "cancel_in_step"]),
    st.sampled_from([STANDARD, FAST]),
    st.integers(1, 60),
    st.integers(1, 40),
    st.integers(0, 100),
)
"""(what, mode, tokens of the prompt, of the output, whom it meets or how many percent of the prompt many have in common)"""


@settings(max_examples=150, deadline=None)
@given(st.lists(arrivals, max_size=60), st.integers(14, 40), st.sampled_from(["same", "alike", "different"]))
def test_any_interleaving_of_arrivals_ends_and_cancels(
    history: list[tuple[str, ModeName, int, int, int]], blocks: int, prompts: str
) -> None:
    m = Machine(num_blocks=blocks, block_size=8, max_rows=4, fast_rows=2, waiting=3, noise=0.3)
    if prompts == "same":  # text that repeats: drafts are made, and most of them prove right
        m.next_token = lambda request, offset: 3 if m.rng.random() < 0.9 else 4
    everyone: list[Request] = []
    cancelled: set[str] = set()
    for what, mode, prompt, out, pick in history:
        if what == "add":
            try:
                common = {"same": prompt, "alike": prompt * pick // 100, "different": 0}[prompts]
                everyone.append(m.request(mode, prompt=[3] * common + m.random_tokens(prompt - common), out=out))
            except Refused:
                continue
        elif what == "step":
            m.step()
        elif everyone:
            r = everyone[pick % len(everyone)]
            if what == "cancel":
                if m.scheduler.cancel(r.id) is not None:
                    cancelled.add(r.id)
            else:
                step = m.scheduler.plan(m.now)
                if step is not None:
                    m.memory.run(step)
                if m.scheduler.cancel(r.id) is not None:
                    cancelled.add(r.id)
                if step is not None:
                    m.now += 0.01
                    m.device_seconds += 0.01
                    received = m.scheduler.complete(step, m.sample(step), m.now, 0.01)
                    m.finished += [x.request for x in received if x.ended]
        check(m)
    m.run_dry()
    check(m)
    assert m.pool.num_free == blocks, "a block was leaked"
    assert {r.id for r in m.finished} == {r.id for r in everyone} - cancelled, "somebody starved"
    assert all(r.num_output == r.max_tokens for r in m.finished)
    assert sum(r.engine_seconds for r in everyone) == pytest.approx(m.device_seconds), "the bill does not add up"


def test_copies_are_right_where_memory_is_short_and_sources_are_soon_needed() -> None:
    num_copies = num_evicted = num_reused = 0
    for seed in range(40):
        rng = random.Random(seed)
        m = Machine(num_blocks=14, block_size=8, max_rows=6, fast_rows=2)
        for _ in range(60):
            common = [1, 1, 1, 1, 2, 2, 2, 2] * 4
            prompt = common[: rng.randrange(1, 30)] + [rng.randrange(3) for _ in range(rng.randrange(1, 12))]
            m.request(rng.choice([STANDARD, FAST]), prompt=prompt, out=rng.randrange(1, 40))
            for _ in range(rng.randrange(8)):
                step = m.step()
                copies = step.copies if step else []
                destinations = {copy.destination for copy in copies}
                num_copies += len(copies)
                num_reused += sum(copy.source in destinations for copy in copies)
            check(m)
        m.run_dry()
        assert len(m.finished) == 60
        assert m.pool.num_free == m.pool.num_blocks
        num_evicted += m.scheduler.num_evicted
    assert min(num_copies, num_evicted, num_reused) > 20, "this history doesn't test what it is meant to"


def check(m: Machine) -> None:
    m.pool.check()
    held = 0
    for r in m.scheduler.running():
        assert r.num_computed <= len(r.tokens) <= r.num_prompt + r.max_tokens
        assert len(r.blocks) * m.pool.block_size >= r.num_computed
        assert r.accepted <= r.drafted
        held += len(r.blocks)
        assert r.num_on_time <= max(0, r.num_output - 1)
    assert m.pool.num_blocks - m.pool.num_free <= held
    for mode in SPEEDS:
        running, waiting = m.scheduler.count(mode)
        assert running <= m.modes[mode].max_rows
        assert running + waiting <= m.modes[mode].max_rows + m.modes[mode].max_waiting


def test_another_composer_decides_who_rides() -> None:
    def one_at_a_time(requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
        first = min(requests, key=lambda r: r.arrival, default=None)
        step = Step([Row(first, first.pending, True)] if first else [])
        fit(step, costs, sizes)
        return step

    m = Machine()
    m.scheduler = Scheduler(m.modes, m.pool, costs(), Limits(), composer=one_at_a_time)
    early = m.request(STANDARD, out=5)
    m.now += 1.0
    late = m.request(FAST, out=5)
    m.run_dry()
    assert m.finished == [early, late]
    assert late.first_token_at is not None
    assert early.last_token_at is not None
    assert late.first_token_at > early.last_token_at


@given(st.lists(st.floats(0.001, 0.5), min_size=1, max_size=50), st.floats(1.0, 100.0))
def test_credit_and_attainment_agree_with_their_definitions(gaps: list[float], pace: float) -> None:
    r = Request("r", STANDARD, pace, 0.0, 1.0, [1, 2], 1000)
    now, delivered = 0.0, []
    for gap in gaps:
        now += gap
        r.receive(7, now)
        delivered.append(now)
    first = delivered[0]
    assert r.credit(now) == pytest.approx(len(delivered) - 1 - pace * (now - first), abs=1e-6)
    assert r.due == pytest.approx(first + len(delivered) / pace)
    on_time = sum(t <= first + k / pace for k, t in enumerate(delivered) if k)
    assert r.attainment == pytest.approx(on_time / (len(delivered) - 1) if len(delivered) > 1 else 1.0)
