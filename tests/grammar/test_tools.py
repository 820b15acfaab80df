"""Forced calls: only valid ones come, in the form asked for."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from grammar.tiny import CALLS, TOKEN_BYTES, encode, shared, text_of, walk
from headway.grammar.errors import ConstraintError
from headway.grammar.tools import CALL_FORMS, CallForm, forced_calls, special_token_of

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"$ref": "#/$defs/city"},
        "days": {"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"},
    },
    "required": ["city"],
    "$defs": {"city": {"enum": ["Paris", "Köln"]}},
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "now"}},
    {"type": "function", "function": {"name": "empty", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": 'say "hi"', "parameters": WEATHER}},
]


def texts(form: CallForm, choice: str | None = None, *, parallel: bool = False, count: int = 12) -> list[str]:
    grammar = shared().compile(forced_calls(TOOLS, choice, form, parallel=parallel))
    found = []
    for seed in range(count):
        matcher = grammar.start()
        tokens = walk(matcher, random.Random(seed), 2000)
        assert matcher.finished and matcher.failure is None
        found.append(text_of(tokens))
    return found


def calls_in(text: str, name: str) -> list[dict[str, Any]]:
    if name == "hermes":
        assert text.startswith("<tool_call>\n") and text.endswith("\n</tool_call>")
        return [
            json.loads(part.removeprefix("<tool_call>\n"))
            for part in text.removesuffix("\n</tool_call>").split("\n</tool_call>\n")
        ]
    if name == "llama3":
        return [json.loads(part) for part in text.split("; ")]
    assert text.startswith("[TOOL_CALLS]")
    calls: list[dict[str, Any]] = json.loads(text.removeprefix("[TOOL_CALLS]"))
    return calls


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", sorted(CALL_FORMS))
def test_calls_are_valid_and_as_many_as_may_be(name: str, parallel: bool) -> None:
    form = CALL_FORMS[name]
    seen, most = set(), 0
    for text in texts(form, parallel=parallel):
        calls = calls_in(text, name)
        most = max(most, len(calls))
        for call in calls:
            assert set(call) == {"name", form.arguments}
            arguments = call[form.arguments]
            seen.add(call["name"])
            if call["name"] == 'say "hi"':
                assert arguments["city"] in ("Paris", "Köln") and set(arguments) <= {"city", "days"}
            else:
                assert arguments == {}
    assert seen == {"now", "empty", 'say "hi"'}
    assert most > 1 if parallel else most == 1


def test_a_named_tool_is_the_only_one() -> None:
    assert {calls_in(text, "hermes")[0]["name"] for text in texts(CALL_FORMS["hermes"], "empty", count=4)} == {"empty"}
    with pytest.raises(ConstraintError, match="now, empty"):
        forced_calls(TOOLS, "other", CALL_FORMS["hermes"], parallel=False)
    with pytest.raises(ConstraintError, match="none"):
        forced_calls([], None, CALL_FORMS["hermes"], parallel=False)


def test_a_special_token_opens_the_calls_where_the_vocabulary_has_it() -> None:
    form = CallForm("[", ", ", "]", special="[CALLS]")
    find = special_token_of(TOKEN_BYTES, encode)
    assert find("[CALLS]") == CALLS and find("[") is None and find("[X") is None
    matcher = shared().compile(forced_calls(TOOLS, "now", form, parallel=False, special_token=find)).start()
    tokens = walk(matcher, random.Random(0), 100)
    assert tokens[0] == CALLS and json.loads(text_of(tokens)) == [{"name": "now", "arguments": {}}]


def test_parameters_that_cannot_be_kept_are_refused() -> None:
    for parameters in ({"not": {}}, [1], "x"):
        tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
        with pytest.raises(ConstraintError):
            shared().compile(forced_calls([tool], None, CALL_FORMS["hermes"], parallel=True))


def test_arguments_that_the_schema_leaves_open_stay_open() -> None:
    parameters = {"type": "object", "additionalProperties": {"type": "integer"}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    matcher = shared().compile(forced_calls([tool], None, CALL_FORMS["llama3"], parallel=False)).start()
    for token in encode('{"name": "f", "parameters": {"x": 1}}'):
        matcher.accept(token)
    assert matcher.finished and matcher.failure is None
