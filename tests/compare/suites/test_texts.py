"""Which answers in words pass: right, nearly right, and meant to fool."""

from __future__ import annotations

from random import Random

import pytest

from headway.compare.suites import arithmetic, classification, extraction, json_schema, transformation
from headway.compare.suites.json_schema import INTEGER, STRING, closed
from headway.compare.suites.texts import code_of, exact, number, one_of

from ..answers import said

COLOURS = ("red", "blue", "green")


@pytest.mark.parametrize("text", ["blue", "Blue.", "The car is blue.", "**blue**", "It's the blue one, blue!"])
def test_naming_the_wanted_one_passes(text: str) -> None:
    assert one_of(text, "blue", COLOURS) is None


@pytest.mark.parametrize("text", ["red", "bluebell", "blue or red", "red, blue, green", "not red but blue", "b l u e", ""])
def test_another_one_or_several_fail(text: str) -> None:
    assert one_of(text, "blue", COLOURS) is not None


@pytest.mark.parametrize("text", ["12", "12.", "5 + 7 = 12", "The sum of 5 and 7 is 12.", "12.0", " 12\n"])
def test_the_wanted_number_passes(text: str) -> None:
    assert number(text, 12, (5, 7)) is None


@pytest.mark.parametrize(
    "text", ["13", "112", "1 2", "12 or 13", "11, 12, 13", "twelve", "-12", "12.5", "12 = 13", "x12", "5", ""]
)
def test_another_number_or_several_fail(text: str) -> None:
    assert number(text, 12, (5, 7)) is not None


def test_a_result_that_is_one_of_the_given_numbers_must_stand_last() -> None:
    assert number("0 + 5 = 5", 5, (0, 5)) is None
    assert number("5", 5, (5, 10)) is None
    assert number("10", 5, (5, 10)) is not None


def test_thousands_may_be_grouped() -> None:
    assert number("1,234,567", 1234567) is None
    assert number("1,234,568", 1234567) is not None


@pytest.mark.parametrize("text", ["abc, def", '"abc, def"', "abc,  def\n", "```\nabc, def\n```", "abc, def."])
def test_what_surrounds_an_exact_answer_is_taken_away(text: str) -> None:
    assert exact(text, "abc, def") is None


@pytest.mark.parametrize("text", ["ABC, DEF", "abc def", "Here it is: abc, def", "abc, def, ghi", "abc, def or def, abc", ""])
def test_an_exact_answer_is_exact(text: str) -> None:
    assert exact(text, "abc, def") is not None


PERSON = closed(name=STRING, age=INTEGER)
ANNA = {"name": "Anna", "age": 30}


@pytest.mark.parametrize(
    "text", ['{"name": "Anna", "age": 30}', '```json\n{"age": 30, "name": "anna"}\n```', '{"name":"Anna","age":30.0}']
)
def test_json_by_its_schema_and_its_values_passes(text: str) -> None:
    assert json_schema.fault(text, PERSON, ANNA) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name": "Anna", "age": "30"}', "by the schema"),
        ('{"name": "Anna"}', "by the schema"),
        ('{"name": "Anna", "age": 30, "x": 1}', "by the schema"),
        ('{"name": "Anna", "age": 31}', "wanted"),
        ('{"name": "Anna", "age": true}', "by the schema"),
        ("{'name': 'Anna', 'age': 30}", "no JSON"),
        ('{"name": "Anna", "age": 30', "no JSON"),
        ('{"name": "Anna", "age": NaN}', "no JSON"),
        ('[{"name": "Anna", "age": 30}]', "by the schema"),
        ("[" * 100_000, "no JSON"),
        ("Anna, 30", "no JSON"),
    ],
)
def test_other_json_fails_and_says_why(text: str, why: str) -> None:
    assert why in (json_schema.fault(text, PERSON, ANNA) or "")


def test_code_is_the_last_block_or_everything() -> None:
    assert code_of("Old:\n```python\na\n```\nNew:\n```python\nb\n```\nDone.") == "b"
    assert code_of("```py\nunfinished(") == "unfinished("
    assert code_of("plain") == "plain"


def test_each_task_in_words_knows_its_own_answer() -> None:
    """The wanted answer, read out of the fault, passes; what is near it fails."""
    for suite in (extraction, classification, arithmetic, transformation):
        for level in range(1, 6):
            for seed in range(20):
                made = suite.make(Random(seed), level)
                fault = made.judge(said("?")).fault
                assert fault is not None and fault.startswith("wanted ")
                wanted = fault.removeprefix("wanted ").rpartition(", got ")[0].strip("'\"")
                if not wanted.endswith("..."):
                    assert made.judge(said(wanted)).correct, (suite.__name__, level, fault)
                    assert not made.judge(said(f"{wanted}9")).correct


def test_a_table_is_sorted_as_asked() -> None:
    made = transformation.make(Random(2), 5)
    lines = str(made.ask.messages[0]["content"]).split("\n\n")[0].splitlines()
    rows = [line.split(";") for line in dict.fromkeys(lines)]
    rows.sort(key=lambda row: (row[1], -int(row[2])))
    wanted = "\n".join(f"{i}. {city.upper()}: {name} ({value})" for i, (name, city, value) in enumerate(rows, start=1))
    assert made.judge(said(wanted)).correct
    assert not made.judge(said("\n".join(reversed(wanted.splitlines())))).correct
