"""Drafts from earlier answers to the same key."""

from __future__ import annotations

import pytest
from machine import Machine

from headway.modes import ModeName
from headway.scheduler import phrases
from headway.scheduler.lookup import EARLIER, Lookup
from headway.scheduler.phrases import PhraseBooks, Phrases
from headway.scheduler.request import Request


def test_what_was_said_is_proposed_as_far_as_it_is_known() -> None:
    book = Phrases()
    book.learn([9, 9, 1, 2, 3, 4, 5, 6], 6)
    assert book.propose([8, 2, 3], 3) == [4, 5, 6]
    assert book.propose([8, 2, 3], 2) == [4, 5]
    assert book.propose([8, 5], 3) == [], "one token alone says too little"
    assert book.propose([], 3) == []


def test_the_prompt_is_not_learnt_and_the_latest_counts() -> None:
    book = Phrases()
    book.learn([1, 2, 3, 4, 5], 2)
    assert book.propose([1, 2], 1) == []
    assert book.propose([2, 3], 1) == [4]
    book.learn([2, 3, 7], 1)
    assert book.propose([2, 3], 1) == [7]


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "MAX_PHRASES", 30)
    monkeypatch.setattr(phrases, "MAX_KEYS", 2)
    book = Phrases()
    book.learn(list(range(100)), 100)
    assert book.propose([1, 2], 1) == []
    assert book.propose([97, 98], 1) == [99]
    books = PhraseBooks()
    first = books.of("a")
    assert books.of("a") is first
    books.of("b")
    books.of("c")
    assert books.of("a") is not first


def test_the_own_text_comes_first_where_it_is_sure() -> None:
    book = Phrases()
    book.learn([1, 2, 7, 7, 7], 5)
    own, lookup = Lookup(), Lookup()
    own.phrases = lookup.phrases = book
    assert own.propose([1, 2, 5, 1, 2], 1, 1) == [5]
    assert lookup.propose([2, 1, 2], 1, 1) == [7], "rather than what followed a single token"
    assert lookup.match == EARLIER
    assert lookup.survival(0) == lookup.survival(3)


def test_an_answer_helps_the_next_one_of_the_same_key_and_no_other() -> None:
    def steps_of(m: Machine, key: str, number: int) -> int:
        prompt = [1000 + number, 2000 + number]
        r = Request(f"{key}{number}", ModeName.STANDARD, 13.0, m.now, m.now + 1, prompt, 60, key=key)
        m.scheduler.add(r, m.now)
        steps = 0
        while m.step() is not None:
            steps += 1
        assert r.tokens[2:] == list(range(60))
        return steps

    m = Machine()
    m.next_token = lambda request, offset: request.num_output + offset
    assert steps_of(m, "a", 1) == 60
    assert steps_of(m, "b", 2) == 60
    assert steps_of(m, "a", 3) < 40
