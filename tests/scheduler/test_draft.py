"""Drafts from a request's own text, and how many of them a step verifies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from machine import Machine, costs

from headway.modes import ModeName
from headway.scheduler.compose import Limits, compose
from headway.scheduler.draft import MAX_DRAFTS, Lookup
from headway.scheduler.request import Request


def test_what_followed_the_same_words_is_proposed() -> None:
    assert Lookup().propose([1, 2, 3, 4, 5, 9, 1, 2, 3], 3) == [4, 5, 9]


def test_the_latest_place_counts_and_the_longer_match_wins() -> None:
    assert Lookup().propose([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 1) == [5]
    assert Lookup().propose([7, 2, 3, 4, 9, 2, 3, 5, 7, 2, 3], 1) == [4]


def test_a_text_that_goes_in_circles_is_followed_round() -> None:
    assert Lookup().propose([8, 1, 2, 3, 1, 2, 3], 8) == [1, 2, 3, 1, 2, 3, 1, 2]


def test_nothing_known_or_nothing_wanted_is_no_draft() -> None:
    assert Lookup().propose([1, 2, 3, 4], 4) == []
    assert Lookup().propose([1, 1, 1, 1], 0) == []
    assert Lookup().propose([5], 4) == []
    assert Lookup().propose([], 4) == []


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=12), st.integers(0, 12))
def test_growing_bit_by_bit_gives_what_all_at_once_gives(pieces: list[list[int]], n: int) -> None:
    grown, tokens = Lookup(), []
    for piece in pieces:
        tokens += piece
        grown.propose(tokens, n)
    drafts = grown.propose(tokens, n)
    assert drafts == Lookup().propose(tokens, n)
    assert len(drafts) <= min(n, MAX_DRAFTS)


def test_a_single_row_whose_guesses_come_true_gets_several_tokens_a_step() -> None:
    m = Machine()
    m.next_token = lambda request, offset: 5
    r = m.request(out=100)
    steps = 0
    while m.step() is not None:
        steps += 1
    assert r.num_output == 100
    assert r.num_accepted > 50
    assert steps < 40


def test_guesses_that_never_come_true_are_given_up() -> None:
    m = Machine()
    alternating = iter(range(10**6))
    # Every pair of tokens has been there before, and what follows is always something new.
    m.next_token = lambda request, offset: [1, 2, 100 + next(alternating)][(request.num_output + offset) % 3]
    r = m.request(out=300)
    m.run_dry()
    assert r.acceptance < 0.8
    assert r.num_drafted < 600


def test_drafts_stay_within_the_budget_and_go_to_the_likeliest() -> None:
    def row(name: str, acceptance: float) -> Request:
        r = Request(name, ModeName.STANDARD, 13.0, 0.0, 1.0, [1, 2, 3, 1, 2, 3], 1000)
        r.tokens += [1]
        r.num_computed, r.first_token_at = len(r.tokens) - 1, 100.0
        r.guess()
        r.acceptance = acceptance
        return r

    rows = [row("sure", 0.95), row("never", 0.05)]
    step = compose(rows, costs(), 100.0, Limits())
    drafts = {r.request.id: r.num_drafts for r in step.rows}
    assert drafts["sure"] >= 4
    assert drafts["never"] == 0
    assert step.num_samples == 2 + drafts["sure"]
    crowd = [row(f"r{i}", 0.2) for i in range(40)]
    assert all(r.num_drafts == 0 for r in compose(crowd, costs(), 100.0, Limits()).rows), "none where it doesn't pay"


def test_a_draft_never_goes_past_max_tokens_and_short_memory_does_without() -> None:
    m = Machine(num_blocks=8, block_size=8)
    m.next_token = lambda request, offset: 5
    requests = [m.request(prompt=[5] * 9, out=n) for n in (1, 2, 3, 30)]
    m.run_dry()
    assert [r.num_output for r in requests] == [1, 2, 3, 30]
    m.pool.check()
