"""Guesses of the draft head: when they are asked for, and when they are taken instead of looked-up ones."""

from __future__ import annotations

import pytest
from machine import Machine

from headway.modes import ModeName
from headway.scheduler.foreseen import Foreseen, Trust, expected
from headway.scheduler.lookup import DraftSource
from headway.scheduler.request import Request
from headway.scheduler.scheduler import MAX_FORESEEN, Received

FAST, STANDARD = ModeName.FAST, ModeName.STANDARD
FRESH = [1, 2, 3, 4, 5, 6]
REPEATS = [1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5]
"""Goes on with 6, 7, 1 if it goes on as it did before."""


def decoding(tokens: list[int], max_tokens: int = 20) -> Request:
    """A request whose last token is output and yet to be computed."""
    r = Request("r", FAST, 30.0, 0.0, 1.0, tokens[:-1], max_tokens)
    r.receive(tokens[-1], 0.1)
    r.num_computed = len(tokens) - 1
    return r


def foresee(r: Request, tokens: list[int], likelihoods: list[float], trust: Trust | None = None) -> None:
    r.foreseen = Foreseen(len(r.tokens), tokens, likelihoods, trust or Trust(), DraftSource.DRAFT_HEAD)


def test_the_head_is_believed_at_first_and_then_known() -> None:
    trust = Trust()
    assert trust.of(0.95) > trust.of(0.6) > trust.of(0.1)
    before = trust.of(0.3)
    for _ in range(200):
        trust.learn(0.9, False)
    assert trust.of(0.9) < 0.05
    assert trust.of(1.0) == trust.of(0.9), "a certain guess has a bin too"
    assert trust.of(0.3) == before


def test_experience_ends_at_the_first_wrong_guess() -> None:
    trust = Trust()
    sure, middling, last = trust.of(0.9), trust.of(0.5), trust.of(0.2)
    Foreseen(0, [7, 8, 9], [0.9, 0.5, 0.2], trust, DraftSource.DRAFT_HEAD).learn([7, 5, 9])
    assert trust.of(0.9) > sure
    assert trust.of(0.5) < middling
    assert trust.of(0.2) == last, "what came after a wrong guess says nothing"


def test_expected_counts_guesses_that_come_true_in_a_row() -> None:
    assert expected([0.5, 0.5, 1.0]) == pytest.approx(0.5 + 0.25 + 0.25)
    assert expected([]) == 0.0
    assert expected([0.0, 1.0]) == 0.0


def test_where_nothing_was_seen_before_the_head_is_asked() -> None:
    r = decoding(FRESH)
    foresee(r, [11, 12, 13], [0.4, 0.4, 0.4])
    r.guess()
    assert r.uses_foreseen
    assert r.drafts == [11, 12, 13]
    assert r.foreseen is not None
    assert [r.survival(k) for k in range(3)] == r.foreseen.survivals


def test_a_long_match_beats_a_doubtful_head_and_yields_to_a_sure_one() -> None:
    r = decoding(REPEATS)
    foresee(r, [11, 12, 13], [0.1, 0.1, 0.1])
    r.guess()
    assert not r.uses_foreseen
    assert r.drafts[:3] == [6, 7, 1]
    assert r.survival(0) == r.lookup.survival(0)
    foresee(r, [11, 12, 13], [0.99, 0.99, 0.99])
    r.guess()
    assert r.uses_foreseen
    assert r.drafts == [11, 12, 13]


def test_a_guess_for_another_position_is_not_used() -> None:
    r = decoding(FRESH)
    foresee(r, [11, 12, 13], [0.9, 0.9, 0.9])
    r.receive(50, 0.2)
    r.num_computed += 1
    r.guess()
    assert not r.uses_foreseen
    assert r.drafts == []


def test_no_more_is_guessed_than_the_output_may_take() -> None:
    r = decoding(FRESH, max_tokens=3)
    foresee(r, [11, 12, 13], [0.9, 0.9, 0.9])
    r.guess()
    assert r.drafts == [11], "of two more tokens the last one needs no guess"
    last = decoding(FRESH, max_tokens=2)
    foresee(last, [11, 12, 13], [0.9, 0.9, 0.9])
    last.guess()
    assert last.drafts == []


def test_both_guessers_learn_whichever_was_used() -> None:
    r, trust = decoding(REPEATS), Trust()
    foresee(r, [6, 12, 13], [0.9, 0.9, 0.9], trust)
    r.guess()
    assert r.uses_foreseen
    looked_up, head = r.lookup.survival(0), trust.of(0.9)
    r.learn([6, 7])
    assert r.lookup.survival(0) > looked_up
    assert trust.of(0.9) < head, "right once, then wrong"


def prefilled(*requests: tuple[ModeName, int]) -> tuple[Machine, list[Request]]:
    """Requests of these modes and lengths of output, all of which have their first token."""
    m = Machine()
    made = [m.request(mode, prompt=8, out=out) for mode, out in requests]
    while any(r.first_token_at is None for r in made):
        m.step()
    return m, made


def worth(m: Machine, received: list[Received]) -> list[Request]:
    return [r.request for r in m.scheduler.worth_foreseeing(received)]


def test_who_rides_in_every_step_is_worth_it() -> None:
    m, (fast, standard) = prefilled((FAST, 20), (STANDARD, 20))
    both = [Received(fast, 1, None), Received(standard, 1, None)]
    assert worth(m, both) == [fast]
    m.scheduler.cancel(fast.id)
    assert worth(m, both[1:]) == [standard], "alone, it rides in every step as well"


def test_who_has_ended_or_nearly_is_not() -> None:
    m, (ended, nearly) = prefilled((FAST, 20), (FAST, 2))
    assert worth(m, [Received(ended, 1, "stop"), Received(nearly, 1, None)]) == []


def test_a_crowd_is_not() -> None:
    m, requests = prefilled(*[(STANDARD, 20)] * (MAX_FORESEEN + 1))
    received = [Received(r, 1, None) for r in requests]
    assert worth(m, received) == []
    m.scheduler.cancel(requests[0].id)
    assert worth(m, received[1:]) == requests[1:]


def test_without_speculation_nobody_is() -> None:
    m, (r,) = prefilled((FAST, 20))
    m.scheduler.speculation = False
    assert worth(m, [Received(r, 1, None)]) == []
