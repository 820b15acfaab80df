"""Which calls of tools pass: right, nearly right, and meant to fool."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from headway.compare.suites import irrelevance, many_tools, parallel_calls, single_call
from headway.compare.suites.calls import Wanted, judge_calls, tool
from headway.compare.suites.task import Made

from ..answers import called, said

STRING = {"type": "string"}
BOOK = tool(
    "book", "Books.", {"name": STRING, "people": {"type": "integer"}, "window": {"type": "boolean"}}, ("name", "people")
)
PAY = tool("pay", "Pays.", {"amount": {"type": "number"}})
TOOLS = (BOOK, PAY)
WANTED = Wanted("book", {"name": "Anna", "people": 4})


@pytest.mark.parametrize(
    "arguments", [{"name": "Anna", "people": 4}, {"people": 4, "name": " anna "}, '{"name": "Anna", "people": 4.0}']
)
def test_the_wanted_call_passes(arguments: Any) -> None:
    verdict = judge_calls(called(("book", arguments)), TOOLS, (WANTED,))
    assert (verdict.correct, verdict.calls, verdict.valid_calls) == (True, 1, 1)


@pytest.mark.parametrize(
    ("name", "arguments", "valid"),
    [
        ("book", {"name": "Anna", "people": 5}, True),
        ("book", {"name": "Anna", "people": 4, "window": True}, True),
        ("book", {"name": "Anna"}, False),
        ("book", {"name": "Anna", "people": "4"}, False),
        ("book", {"name": "Anna", "people": True}, False),
        ("book", {"name": "Anna", "people": 4, "extra": 1}, False),
        ("book", '{"name": "Anna", "people": 4', False),
        ("book", '[{"name": "Anna", "people": 4}]', False),
        ("book", "[" * 100_000, False),
        ("pay", {"amount": 4}, True),
        ("Book", {"name": "Anna", "people": 4}, False),
        ("functions.book", {"name": "Anna", "people": 4}, False),
    ],
)
def test_other_calls_fail_and_are_valid_or_not(name: str, arguments: Any, valid: bool) -> None:
    verdict = judge_calls(called((name, arguments)), TOOLS, (WANTED,))
    assert (verdict.correct, verdict.valid_calls) == (False, int(valid))


def test_a_call_in_words_is_none() -> None:
    assert not judge_calls(said('book(name="Anna", people=4)'), TOOLS, (WANTED,)).correct
    assert not judge_calls(said('<tool_call>{"name": "book", "arguments": {}}</tool_call>'), TOOLS, ()).correct


def test_each_wanted_call_is_made_once_in_whatever_order() -> None:
    one, two = ("book", {"name": "Anna", "people": 4}), ("pay", {"amount": 3})
    wanted = (WANTED, Wanted("pay", {"amount": 3}))
    assert judge_calls(called(two, one), TOOLS, wanted).correct
    assert not judge_calls(called(one, one), TOOLS, wanted).correct
    assert not judge_calls(called(one), TOOLS, wanted).correct
    assert not judge_calls(called(one, two, two), TOOLS, wanted).correct


def test_where_no_tool_fits_any_call_is_wrong_and_words_are_right() -> None:
    assert judge_calls(said("I can't do that."), TOOLS, ()).correct
    assert not judge_calls(called(("pay", {"amount": 1})), TOOLS, ()).correct


def wanted_calls(made: Made) -> list[tuple[str, dict[str, Any]]]:
    """What the judge was given, by a look into it."""
    cells = made.judge.__closure__ or ()
    for cell in cells:
        values = cell.cell_contents if isinstance(cell.cell_contents, list | tuple) else [cell.cell_contents]
        if values and all(isinstance(value, Wanted) for value in values):
            return [(value.name, dict(value.arguments)) for value in values]
    raise AssertionError("no wanted calls")


@pytest.mark.parametrize("suite", [single_call, parallel_calls, many_tools], ids=lambda suite: suite.SUITE.name)
@pytest.mark.parametrize("level", range(1, 6))
def test_what_tasks_want_is_allowed_by_their_tools(suite: Any, level: int) -> None:
    for seed in range(10):
        made = suite.make(Random(seed), level)
        calls = wanted_calls(made)
        verdict = made.judge(called(*calls))
        assert verdict.correct, verdict.fault
        assert verdict.valid_calls == len(calls)
        assert not made.judge(called(*calls, calls[0])).correct


def test_a_date_to_work_out_is_the_right_one() -> None:
    made = single_call.make(Random(1), 5)
    prompt = str(made.ask.messages[0]["content"])
    (_, arguments), *_ = wanted_calls(made)
    from datetime import date

    today = date.fromisoformat(prompt.partition(", ")[2][:10])
    wanted = date.fromisoformat(arguments["date"])
    ordinal, weekday = prompt.partition("on the ")[2].split(" ")[:2]
    assert wanted.strftime("%A") == weekday
    assert (wanted - today).days in range(7 * (int(ordinal[0]) - 1) + 1, 7 * int(ordinal[0]) + 1)


@pytest.mark.parametrize("level", range(1, 6))
def test_irrelevant_questions_want_no_call(level: int) -> None:
    made = irrelevance.make(Random(level), level)
    assert made.judge(said("No tool can do that.")).correct
    name = made.ask.tools[0]["function"]["name"]
    assert not made.judge(called((name, {}))).correct
