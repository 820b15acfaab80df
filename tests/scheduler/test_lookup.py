"""Drafts from a request's own text, and how many of them a step verifies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from machine import Machine, costs

from headway.modes import ModeName
from headway.scheduler.compose import compose
from headway.scheduler.limits import Limits
from headway.scheduler.lookup import AT_ONCE, LONGEST, MAX_DRAFTS, DraftSource, Lookup
from headway.scheduler.phrases import Phrases
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes


def test_what_followed_the_same_words_is_proposed() -> None:
    assert Lookup().propose([1, 2, 3, 4, 5, 9, 1, 2, 3], 1, 3) == [4, 5, 9]


def test_the_latest_place_counts_and_the_longer_match_wins() -> None:
    assert Lookup().propose([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 1, 1) == [5]
    assert Lookup().propose([7, 2, 3, 4, 9, 2, 3, 5, 7, 2, 3], 1, 1) == [4]


def test_a_text_that_goes_in_circles_is_followed_round() -> None:
    assert Lookup().propose([8, 1, 2, 3, 1, 2, 3], 1, 8) == [1, 2, 3, 1, 2, 3, 1, 2]


def test_nothing_known_or_nothing_wanted_is_no_draft() -> None:
    assert Lookup().propose([1, 2, 3, 4], 1, 4) == []
    assert Lookup().propose([1, 1, 1, 1], 1, 0) == []
    assert Lookup().propose([5], 1, 4) == []
    assert Lookup().propose([], 1, 4) == []


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=12), st.integers(0, 12))
def test_growing_bit_by_bit_gives_what_all_at_once_gives(pieces: list[list[int]], n: int) -> None:
    grown, tokens = Lookup(), []
    for piece in pieces:
        tokens += piece
        grown.propose(tokens, 1, n)
    drafts = grown.propose(tokens, 1, n)
    assert drafts == Lookup().propose(tokens, 1, n)
    assert len(drafts) <= min(n, MAX_DRAFTS)


def test_a_long_prompt_is_entered_while_its_chunks_are_computed_and_never_much_at_once() -> None:
    lookup, tokens = Lookup(), [*range(10 * AT_ONCE), 1, 2, 3]
    assert lookup.propose(tokens, 1, 2) == [4, 5], "what was entered first is found at once"
    assert lookup.propose([*tokens[:-3], 5 * AT_ONCE, 5 * AT_ONCE + 1], 1, 1) == [], "the rest is not there yet"
    for _ in range(9):
        lookup.enter(tokens, len(tokens))
    assert lookup.propose([*tokens[:-3], 9 * AT_ONCE, 9 * AT_ONCE + 1], 1, 1) == [9 * AT_ONCE + 2]


def test_drafts_are_counted_by_where_they_came_from() -> None:
    book = Phrases()
    book.learn([7, 8, 9], 3)
    cases: list[tuple[Lookup, list[int], DraftSource]] = [
        (Lookup(), [1, 2, 3, 1, 2], DraftSource.OWN_TEXT),
        (Lookup([4, 5, 6, 7]), [1, 4, 5], DraftSource.PREDICTION),
        (Lookup(), [1, 7, 8], DraftSource.EARLIER_ANSWER),
    ]
    cases[2][0].phrases = book
    for lookup, tokens, source in cases:
        r = Request("a", ModeName.FAST, 30.0, 0.0, 1.0, tokens, 10, lookup=lookup)
        assert lookup.propose(tokens, 1, 2)
        r.note_drafts(2, 1)
        r.note_drafts(0, 0)
        assert (r.drafted, r.accepted) == ({source: 2}, {source: 1})


def test_a_single_row_whose_guesses_come_true_gets_several_tokens_a_step() -> None:
    m = Machine()
    m.next_token = lambda request, offset: 5
    r = m.request(out=100)
    steps = 0
    while m.step() is not None:
        steps += 1
    assert r.num_output == 100
    assert r.accepted[DraftSource.OWN_TEXT] > 50
    assert steps < 40


def test_guesses_that_never_come_true_are_given_up() -> None:
    m = Machine()
    alternating = iter(range(10**6))
    # Every pair of tokens has been there before, and what follows is always something new.
    m.next_token = lambda request, offset: [1, 2, 100 + next(alternating)][(request.num_output + offset) % 3]
    r = m.request(out=300)
    late = [step.num_samples for _ in range(400) if (step := m.step())][-100:]
    assert r.num_output == 300
    r.lookup.match = 2
    assert r.survival(0) < 0.1
    assert sum(late) < 300, "no more than a single row's padding holds"


def test_each_length_of_match_has_its_own_experience() -> None:
    lookup = Lookup()
    for _ in range(30):
        lookup.match = 1
        lookup.learn([5, 6], [7])
        lookup.match = 5
        lookup.learn([5, 6], [5, 6])
    lookup.match = 1
    assert lookup.survival(0) < 0.05
    lookup.match = 5
    assert lookup.survival(0) > 0.95


def test_a_prediction_is_followed_from_its_beginning_and_after_a_difference() -> None:
    prompt, prediction = [1, 2, 3], [10, 11, 12, 13, 14, 15, 16, 17, 18]
    lookup = Lookup(prediction)
    assert lookup.propose(prompt, 0, 4) == [10, 11, 12, 13]
    assert lookup.propose([*prompt, 10, 11], 2, 4) == [12, 13, 14, 15]
    assert lookup.propose([*prompt, 10, 11, 99], 3, 4) == [], "nothing is known of what comes after the difference"
    assert lookup.propose([*prompt, 10, 11, 99, 14], 4, 4) == [15, 16, 17, 18]
    assert lookup.propose([*prompt, 10, 11, 99, 14, 15, 16, 17, 18], 8, 4) == []


def test_without_a_prediction_the_first_token_has_no_draft() -> None:
    assert Lookup().propose([1, 2, 3], 0, 4) == []


def row(name: str, acceptance: float) -> Request:
    r = Request(name, ModeName.STANDARD, 13.0, 0.0, 1.0, [1, 2, 3, 1, 2, 3], 1000)
    r.tokens += [1]
    r.num_computed, r.first_token_at = len(r.tokens) - 1, 100.0
    r.guess()
    for _ in range(100):
        for match in range(1, LONGEST + 1):
            r.lookup.match = match
            r.lookup.learn([4], [4 if acceptance > 0.5 else 5])
    r.lookup.match = 3
    return r


def drafts_of(rows: list[Request], sizes: StepSizes) -> dict[str, int]:
    return {r.request.id: r.num_drafts for r in compose(rows, costs(), sizes, 100.0, Limits()).rows}


def test_drafts_go_to_the_likeliest_and_stay_within_the_budget() -> None:
    drafts = drafts_of([row("sure", 0.95), row("never", 0.05)], StepSizes(costs()))
    assert drafts["sure"] >= 6
    assert drafts["never"] == 0


def test_where_nothing_is_likely_no_step_grows_for_it() -> None:
    sizes = StepSizes(costs())
    crowd = [row(f"r{i}", 0.05) for i in range(40)]
    assert sum(drafts_of(crowd, sizes).values()) == 0


def test_room_that_is_there_anyway_is_used() -> None:
    """A step of five rows is padded to eight tokens: three likely drafts cost next to nothing."""
    sizes = StepSizes(costs())
    sizes.take(8, 8)
    drafts = drafts_of([row("sure", 0.95), *(row(f"r{i}", 0.05) for i in range(4))], sizes)
    assert drafts["sure"] >= 3


def test_a_draft_never_goes_past_max_tokens_and_short_memory_does_without() -> None:
    m = Machine(num_blocks=8, block_size=8)
    m.next_token = lambda request, offset: 5
    requests = [m.request(prompt=[5] * 9, out=n) for n in (1, 2, 3, 30)]
    m.run_dry()
    assert [r.num_output for r in requests] == [1, 2, 3, 30]
    m.pool.check()
