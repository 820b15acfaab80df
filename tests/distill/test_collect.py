"""Collecting answers from a made-up model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headway.distill import collect
from headway.distill.answers import Answer
from headway.distill.collect import LONGEST_ANSWER, SHORTEST_ANSWER, Collector, runs_in_circles
from headway.distill.dialogue import Dialogue
from headway.distill.known import Features
from headway.distill.prompts import Given, MadeUp, Messages, asked
from headway.errors import UsageError
from headway.text.template import ChatTemplate

from .chatty import END, ByteTokenizer, ChattyEngine, Template

TEMPLATE: Any = Template()
TOKENIZER: Any = ByteTokenizer()


def collector(engine: ChattyEngine, template: Any = TEMPLATE, seed: int = 0) -> Collector:
    return Collector(engine, Dialogue(TOKENIZER, template), Features((0, 1), 3), seed)


def take(engine: ChattyEngine, prompts: Any, count: int, **more: Any) -> dict[int, Answer]:
    found: dict[int, Answer] = {}
    for ended in collector(engine, **more).answers(prompts, itertools.count()):
        found |= {answer.number: answer for answer in ended}
        if len(found) >= count:
            return found
    raise AssertionError("no more answers")


def given(*texts: str) -> Given:
    return Given([asked(text) for text in texts], "given")


def test_an_answer_is_its_prompt_and_what_came_with_what_was_known_there() -> None:
    prompts = given("alpha", "beta")
    for number, answer in take(ChattyEngine(), prompts, 10).items():
        messages = prompts.at(number).messages
        assert messages is not None
        assert bytes(answer.prompt).decode() == TEMPLATE.render(messages)
        whole = answer.prompt + answer.tokens
        assert answer.known.dtype == np.float16
        assert answer.known.shape == (len(answer.tokens), 6)
        for i, (position, before, *_) in enumerate(answer.known.astype(int).tolist()):
            assert position == len(answer.prompt) + i - 1
            assert before == whole[position]
        assert SHORTEST_ANSWER <= len(answer.tokens) <= LONGEST_ANSWER
        assert END not in answer.tokens[:-1]


def test_answers_do_not_depend_on_what_else_is_collected() -> None:
    many = take(ChattyEngine(), MadeUp(), 30)
    few = take(ChattyEngine(num_blocks=300), MadeUp(), 20)
    both = many.keys() & few.keys()
    assert len(both) > 10
    for number in both:
        assert (many[number].prompt, many[number].tokens) == (few[number].prompt, few[number].tokens)
    other = take(ChattyEngine(), MadeUp(), 30, seed=1)
    assert any(other[n].tokens != many[n].tokens for n in other.keys() & many.keys())


def test_many_rows_run_at_once_as_far_as_there_are_blocks() -> None:
    engine = ChattyEngine()
    take(engine, given("alpha"), 64)
    assert engine.most_rows > 30
    small = ChattyEngine(num_blocks=250)
    take(small, given("alpha"), 5)
    assert small.most_rows == 2


def test_some_are_greedy_and_those_asked_again_are_not() -> None:
    prompts = given("alpha")
    answers = take(ChattyEngine(ends_at=60), prompts, 12)
    assert len({tuple(a.tokens) for a in answers.values()}) >= 11
    (greedy,) = [a for ended in collector(ChattyEngine(ends_at=60)).held_out(held(asked("alpha")), 500) for a in ended]
    many = take(ChattyEngine(ends_at=60), given(*["alpha"] * 40), 30)
    assert 0.3 < np.mean([a.tokens == greedy.tokens for n, a in many.items() if n < 30]) < 0.9


def held(*messages: Messages) -> Any:
    class Held:
        name = "held"
        held_out = messages

    return Held()


def test_what_is_held_out_is_answered_greedily_up_to_a_length() -> None:
    prompts = held(asked("one"), asked("two"), asked("x" * 1000))
    answers = [a for ended in collector(ChattyEngine()).held_out(prompts, 20) for a in ended]
    assert sorted(a.number for a in answers) == [0, 1], "the third has no room"
    assert all(len(a.tokens) == 20 for a in answers)


def test_the_model_makes_up_questions_and_answers_them() -> None:
    own = [n for n in range(60) if MadeUp().at(n).messages is None]
    answers = [a for ended in collector(ChattyEngine(ends_at=150, asks_until=40)).answers(MadeUp(), iter(own)) for a in ended]
    assert len(answers) == len(own)
    for answer in answers:
        text = bytes(answer.prompt).decode()
        question = text.removeprefix("<user>").removesuffix("<assistant>")
        assert text == f"<user>{question}<assistant>"
        assert len(question) == 40 - len("<user>")
    assert len({bytes(a.prompt) for a in answers}) == len(own), "each another question"


def test_a_question_without_an_end_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "MAX_USELESS", 20)
    own = (n for n in itertools.count() if MadeUp().at(n).messages is None)
    with pytest.raises(UsageError, match="the model made up no question"):
        list(collector(ChattyEngine(ends_at=150)).answers(MadeUp(), own))


def test_without_a_template_the_model_says_what_it_likes() -> None:
    own = (n for n in itertools.count() if MadeUp().at(n).messages is None)
    ended = next(e for e in collector(ChattyEngine(), template=None).answers(MadeUp(), own) if e)
    assert ended[0].prompt == [END], "the start of a document"


@pytest.mark.parametrize(
    ("prompts", "settings", "says"),
    [
        (given("x" * 1000), {}, "a prompt has"),
        (given("alpha"), {"ends_at": 5}, "the answer was too short"),
    ],
)
def test_prompts_that_all_come_to_nothing_end_it(
    prompts: Given, settings: dict[str, int], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MAX_USELESS", 20)
    with pytest.raises(UsageError, match=f"20 prompts in a row could not be used.*{says}"):
        take(ChattyEngine(**settings), prompts, 1)


def test_messages_that_the_template_refuses_are_passed_over() -> None:
    template = ChatTemplate(
        "{% if messages[0].content == 'bad' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
    )
    prompts = given("bad", "good")
    answers = take(ChattyEngine(), prompts, 4, template=template)
    assert all(bytes(a.prompt) == b"good" for a in answers.values())


@pytest.mark.parametrize(
    ("make", "circles"),
    [
        (lambda: [*range(30), *[7] * 40], True),
        (lambda: [*range(30), *[1, 2, 3] * 20], True),
        (lambda: [*range(30), *list(range(16)) * 4], True),
        (lambda: [*range(30), *list(range(17)) * 4], False),
        (lambda: [7] * 39, False),
        (lambda: list(range(100)), False),
    ],
)
def test_circles_are_seen(make: Callable[[], list[int]], circles: bool) -> None:
    assert runs_in_circles(make()) is circles
