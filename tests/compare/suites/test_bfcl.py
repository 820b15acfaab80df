"""The leaderboard's rules, on examples in its data's form; and, where its wheel is, on its own questions."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from headway.compare.suites import bfcl
from headway.compare.suites.bfcl_rules import wrong

from ..answers import called, said


def function(name: str, required: list[str], **types: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": "", "parameters": {"type": "dict", "properties": types, "required": required}}


TRIANGLE = function("area", ["base", "height"], base={"type": "integer"}, height={"type": "float"}, unit={"type": "string"})
AREA = [{"area": {"base": [10], "height": [5.0], "unit": ["square units", ""]}}]


@pytest.mark.parametrize(
    "arguments",
    [
        {"base": 10, "height": 5.0},
        {"base": 10, "height": 5},
        {"base": 10, "height": 5, "unit": "Square-Units"},
        {"base": 10, "height": 5, "unit": "square_units."},
    ],
)
def test_possible_answers_pass(arguments: dict[str, Any]) -> None:
    assert wrong([("area", arguments)], [TRIANGLE], AREA) is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"base": 10},
        {"base": "10", "height": 5},
        {"base": 10.0, "height": 5},
        {"base": 11, "height": 5},
        {"base": True, "height": 5},
        {"base": 10, "height": 5, "unit": "metres"},
        {"base": 10, "height": 5, "colour": "red"},
        {"base": 10, "height": 5, "unit": None},
    ],
)
def test_others_fail(arguments: dict[str, Any]) -> None:
    assert wrong([("area", arguments)], [TRIANGLE], AREA) is not None


def test_another_name_or_number_of_calls_fails() -> None:
    call = ("area", {"base": 10, "height": 5})
    assert wrong([("volume", call[1])], [TRIANGLE], AREA) is not None
    assert wrong([], [TRIANGLE], AREA) == "wanted 1 call, got 0"
    assert wrong([call, call], [TRIANGLE], AREA) == "wanted 1 call, got 2"


def test_what_may_not_be_left_out_must_be_there() -> None:
    truth = [{"area": {"base": [10], "height": [5.0], "unit": ["m"]}}]
    assert wrong([("area", {"base": 10, "height": 5})], [TRIANGLE], truth) is not None


def test_parallel_calls_match_in_whatever_order_and_each_once() -> None:
    truth = [{"area": {"base": [1], "height": [2.0]}}, {"area": {"base": [3], "height": [4.0]}}]
    one, two = ("area", {"base": 1, "height": 2}), ("area", {"base": 3, "height": 4})
    assert wrong([two, one], [TRIANGLE], truth) is None
    assert wrong([one, one], [TRIANGLE], truth) is not None


LISTS = function(
    "f",
    ["xs"],
    xs={"type": "array", "items": {"type": "string"}},
    d={"type": "dict"},
    ds={"type": "array", "items": {"type": "dict"}},
)


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"xs": ["New York", "rome"]}, True),
        ({"xs": ["rome", "New York"]}, False),
        ({"xs": ["New York"]}, False),
        ({"xs": [1, 2]}, False),
        ({"xs": "New York, rome"}, False),
        ({"xs": ["new york", "Rome"], "d": {"a": 1}}, True),
        ({"xs": ["new york", "Rome"], "d": {"a": 2}}, False),
        ({"xs": ["new york", "Rome"], "d": {}}, False),
        ({"xs": ["new york", "Rome"], "d": {"a": 1, "b": "Z"}}, True),
        ({"xs": ["new york", "Rome"], "ds": [{"a": 1}]}, True),
        ({"xs": ["new york", "Rome"], "ds": [{"a": 1}, {"a": 1}]}, False),
        ({"xs": ["new york", "Rome"], "ds": ["a"]}, False),
    ],
)
def test_lists_and_objects(arguments: dict[str, Any], right: bool) -> None:
    answers = {"xs": [["New York", "Rome"]], "d": [{"a": [1], "b": ["z", ""]}, ""], "ds": [[{"a": [1]}], ""]}
    assert (wrong([("f", arguments)], [LISTS], [{"f": answers}]) is None) is right


ENTRY = {
    "id": "simple_python_x",
    "question": [[{"role": "user", "content": "Area?"}]],
    "function": [{**TRIANGLE, "name": "geometry.area"}],
    "ground_truth": [{"geometry.area": AREA[0]["area"]}],
}


def test_names_with_dots_and_types_are_put_into_an_apis_words() -> None:
    made = bfcl.made(ENTRY)
    (tool,) = made.ask.tools
    assert tool["function"]["name"] == "geometry_area"
    assert tool["function"]["parameters"]["type"] == "object"
    assert tool["function"]["parameters"]["properties"]["height"]["type"] == "number"
    verdict = made.judge(called(("geometry_area", {"base": 10, "height": 5})))
    assert (verdict.correct, verdict.valid_calls) == (True, 1)
    assert not made.judge(called(("geometry_area", '{"base": 10, "height"'))).correct
    assert not made.judge(said("geometry_area(base=10, height=5)")).correct


def test_where_no_function_fits_calls_are_wrong() -> None:
    made = bfcl.made({**ENTRY, "ground_truth": None})
    assert made.judge(said("I have no function for that.")).correct
    assert not made.judge(called(("geometry_area", {"base": 10, "height": 5}))).correct


HERE = pytest.mark.skipif(bfcl.missing() is not None, reason=f"needs its data: {bfcl.INSTALL}")


@HERE
@pytest.mark.parametrize("category", bfcl.CATEGORIES[1:])
def test_its_own_checker_says_the_same(category: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first possible answer to each of its questions, and of what comes of it by mistakes of many kinds."""
    check = leaderboards_checker(monkeypatch)
    rng, agreed = Random(category), {True: 0, False: 0}
    for entry in bfcl._entries(category):
        truth = entry["ground_truth"]
        calls = [(name, first(answers)) for possible in truth for name, answers in possible.items()]
        for changed in (calls, *(corrupted(calls, rng) for _ in range(6))):
            theirs = check(entry["function"], [{name: arguments} for name, arguments in changed], truth, category)
            ours = wrong(changed, entry["function"], truth) is None
            assert ours is theirs, (entry["id"], changed)
            agreed[ours] += 1
    assert min(agreed.values()) > len(bfcl._entries(category)) / 2  # right ones and wrong ones


def leaderboards_checker(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any, Any, str], bool]:
    """`ast_checker` of bfcl-eval, without the list of models, whose imports are the wheel's many requirements."""
    models = types.ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = {"m": types.SimpleNamespace(underscore_to_dot=False)}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, models.__name__, models)
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON

    def check(functions: Any, calls: Any, truth: Any, category: str) -> bool:
        return bool(checker.ast_checker(functions, calls, truth, python, category, "m")["valid"])

    return check


def corrupted(calls: list[tuple[str, dict[str, Any]]], rng: Random) -> list[tuple[str, dict[str, Any]]]:
    """With one change, of which some leave it right."""
    calls = [(name, dict(arguments)) for name, arguments in calls]
    place = rng.randrange(len(calls))
    name, arguments = calls[place]
    kind = rng.randrange(8)
    if kind == 0:
        calls[place] = (f"{name}_", arguments)
    elif kind == 1:
        calls.append(calls[place])
    elif kind == 2:
        del calls[place]
    elif kind == 3:
        rng.shuffle(calls)
    elif kind == 4:
        arguments["no_such"] = 1
    elif arguments:
        parameter = rng.choice(list(arguments))
        if kind == 5:
            del arguments[parameter]
        else:
            arguments[parameter] = other(arguments[parameter], rng)
    return calls


def other(value: Any, rng: Random) -> Any:
    """A value like this one, or of another type."""
    if isinstance(value, str):
        return rng.choice((value.upper(), f"{value}.", f"{value}x", 3, [value]))
    if isinstance(value, bool):
        return rng.choice((not value, str(value), int(value)))
    if isinstance(value, int | float):
        return rng.choice((float(value), value + 1, str(value), [value]))
    if isinstance(value, list):
        return rng.choice((value[::-1], [*value, *value[:1]], value[1:], "x", [str(item) for item in value]))
    return rng.choice(({**value, "no_such": 1}, {}, "x", [value]))


def first(answers: Any) -> Any:
    """The first possible value of each parameter."""
    return {parameter: plain(value) for parameter, values in answers.items() for value in [v for v in values if v != ""][:1]}


def plain(value: Any) -> Any:
    """Objects among possible answers hold lists of possible values."""
    if isinstance(value, dict):
        return first(value)
    return [plain(item) for item in value] if isinstance(value, list) else value
