"""Structured output.

Reports: llama.cpp 8073, 16790, ollama 8444, turbovault 51 ($ref); vllm.cpp 429, xgrammar 192 (bounds, endless digits);
llguidance 265 (keywords taken but not honoured); lm-format-enforcer 116 (Unicode); llama.cpp 4446, 10997 (characters and stop
strings in a forced text).
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from cases.client import CHAT, COMPLETIONS, Client, content_of, tokens_of

pytestmark = pytest.mark.model

Json = dict[str, Any]


def formatted(schema: Any) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "k", "strict": True, "schema": schema}}


def obj(required: bool = True, **properties: Any) -> Json:
    names = {"required": list(properties)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **names}


def const(text: str) -> Json:
    return formatted(obj(t={"const": text}))


def everywhere(server: Client, body: Json) -> Json:
    """The answer of a greedy request, which must be the same streamed or not and at both speeds."""
    answers = [
        server.ok(CHAT, {**body, "stream": stream, "service_tier": tier})
        for stream in (False, True)
        for tier in ("default", "priority")
    ]
    assert len({content_of(answer) for answer in answers}) == 1
    assert len({answer["choices"][0]["finish_reason"] for answer in answers}) == 1
    return answers[0]


def fits(answer: Json, schema: Any) -> Any:
    """The value of a complete answer."""
    assert answer["choices"][0]["finish_reason"] == "stop", answer
    value = json.loads(content_of(answer))
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
    return value


COLOUR = {"enum": ["red", "blue"]}
NUMBER = {"type": "object", "properties": {"p": {"type": "integer"}}, "required": ["p"]}
WITH_NUMBER = {"type": "object", "properties": {"p": {"$ref": "#/$defs/A"}}, "required": ["p"]}
BRANCH = {"anyOf": [{"type": "string", "maxLength": 8}, {"$ref": "#/properties/tree"}]}
TWIG = {"$ref": "#/properties/tree/properties/left/anyOf/0"}


@pytest.mark.parametrize(
    "schema",
    [
        {**obj(c={"$ref": "#/$defs/C"}), "$defs": {"C": COLOUR}},
        {"$ref": "#/$defs/C", "$defs": {"C": WITH_NUMBER, "A": NUMBER}},
        {"$ref": "#/$defs/C", "$defs": {"A": NUMBER, "C": WITH_NUMBER}},
        obj(tree=obj(left=BRANCH, right=TWIG)),
        {"type": "integer", "minimum": -7, "maximum": 3},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 1000},
        {"enum": ["🐈", "龜", 'naïve "q" \\ /', "\u0000"]},
        {"enum": ["🐈"]},
        obj(**{"größe 🫠": {"type": "boolean"}}),
        {"const": ""},
        {"enum": [None, True, 1.5, {"a": []}]},
        obj(id={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}, on={"type": "string", "format": "date"}),
    ],
)
def test_what_comes_fits_the_schema(server: Client, schema: Any) -> None:
    answer = everywhere(server, server.chat("Give me an example.", max_tokens=200, response_format=formatted(schema)))
    choice = answer["choices"][0]
    if choice["finish_reason"] == "length":  # a number or a tree that goes on
        assert answer["usage"]["completion_tokens"] == 200
    else:
        fits(answer, schema)


@pytest.mark.parametrize("schema", [{}, True, {"type": "object"}, {"type": "integer"}])
def test_open_schemas_end_or_are_cut(server: Client, schema: Any) -> None:
    for seed in range(3):
        body = server.chat(response_format=formatted(schema), temperature=2.0, seed=seed, max_tokens=60)
        answer = server.ok(CHAT, body)
        if answer["choices"][0]["finish_reason"] == "length":
            assert answer["usage"]["completion_tokens"] == 60
        else:
            fits(answer, schema)


def test_any_json_object(server: Client) -> None:
    body = server.chat("Describe a cat in JSON.", response_format={"type": "json_object"}, max_tokens=80, temperature=0.7)
    for seed in range(4):
        answer = server.ok(CHAT, {**body, "seed": seed})
        assert content_of(answer).startswith("{")
        if answer["choices"][0]["finish_reason"] == "stop":
            assert isinstance(json.loads(content_of(answer)), dict)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (obj(a={"$ref": "#/$defs/X", "$defs": {"X": {"type": "integer"}}}), "#/$defs/X"),
        (obj(a={"type": "array", "uniqueItems": True}), "'uniqueItems' at #/properties/a"),
        (
            {
                "type": "object",
                "properties": {"score": {"type": "integer", "multipleOf": 5}},
                "patternProperties": {"^score$": {"type": "integer"}},
                "additionalProperties": False,
            },
            "'patternProperties' at #",
        ),
        (obj(a={"$ref": "#"}), "can't be finished"),
        ({"type": "integer", "minimum": 4, "maximum": 3}, "minimum"),
        ({"type": "strin"}, "strin"),
        (False, "false"),
    ],
)
def test_what_cannot_be_kept_is_refused(server: Client, schema: Any, told: str) -> None:
    error = server.post(CHAT, server.chat(response_format=formatted(schema))).error
    assert error["param"] == "response_format" and told in error["message"], error
    assert server.post(COMPLETIONS, server.completion(response_format=formatted(schema))).status == 400


@pytest.mark.parametrize(
    "response_format", [{"type": "xml"}, {"type": "json_schema"}, {}, {"type": "json_schema", "json_schema": {}}]
)
def test_a_broken_response_format_is_refused(server: Client, response_format: Json) -> None:
    assert server.post(CHAT, server.chat(response_format=response_format)).error["param"].startswith("response_format")


def test_a_bias_cannot_break_the_grammar(server: Client) -> None:
    body = server.chat(response_format=const("hello"), max_tokens=40, logit_bias={"19556": 100, "28": 100})
    assert fits(everywhere(server, body), True) == {"t": "hello"}


def test_min_tokens_and_ignore_eos_do_not_outlast_the_grammar(server: Client) -> None:
    plain = server.ok(CHAT, server.chat(response_format=const("hello"), max_tokens=40))
    held = everywhere(server, server.chat(response_format=const("hello"), max_tokens=40, min_tokens=30, ignore_eos=True))
    assert content_of(held) == content_of(plain) and fits(held, True) == {"t": "hello"}
    number = server.chat(response_format=formatted({"type": "integer"}), max_tokens=12, min_tokens=10)
    assert server.ok(CHAT, number)["usage"]["completion_tokens"] >= 10


def test_a_text_of_the_exact_length_is_complete(server: Client) -> None:
    body = server.chat(response_format=const("hello there"), max_tokens=60)
    whole = server.ok(CHAT, body)
    n = whole["usage"]["completion_tokens"]
    assert everywhere(server, {**body, "max_tokens": n})["choices"][0]["finish_reason"] == "stop"
    cut = everywhere(server, {**body, "max_tokens": n - 1})
    assert cut["choices"][0]["finish_reason"] == "length" and cut["usage"]["completion_tokens"] == n - 1


def test_characters_of_several_tokens_come_whole(server: Client) -> None:
    text = "🫠龜é👩‍👩‍👧‍👦𝔘ż"
    body = server.chat("x", max_tokens=120, response_format=const(text))
    assert fits(everywhere(server, body), True) == {"t": text}
    for limit in range(1, 13):
        cut = everywhere(server, {**body, "max_tokens": limit})
        assert "�" not in content_of(cut) and cut["usage"]["completion_tokens"] == limit


@pytest.mark.parametrize("stop", ["aab", "abac", "aaaaaaab"])
def test_stop_strings_that_nearly_match_before(server: Client, stop: str) -> None:
    body = server.chat(max_tokens=60, response_format=const("aaaaaab ababababac end"))
    whole = content_of(server.ok(CHAT, body))
    cut = everywhere(server, {**body, "stop": [stop]})
    assert content_of(cut) == (whole[: whole.find(stop)] if stop in whole else whole)


def test_log_probabilities_are_those_of_the_model(server: Client) -> None:
    answer = server.ok(CHAT, server.chat(response_format=const("hello"), max_tokens=40, logprobs=True, top_logprobs=3))
    entries = answer["choices"][0]["logprobs"]["content"]
    assert len(entries) == answer["usage"]["completion_tokens"] == len(tokens_of(answer))
    assert all(entry["logprob"] <= 0.0 for entry in entries)
    assert any(entry["logprob"] < entry["top_logprobs"][0]["logprob"] - 1.0 for entry in entries)


def test_sampled_text_is_the_same_at_both_speeds(server: Client) -> None:
    schema = obj(name={"type": "string", "maxLength": 20}, age={"type": "integer", "minimum": 0, "maximum": 120})
    for seed in range(4):
        body = server.chat("Invent a person.", response_format=formatted(schema), temperature=1.2, seed=seed, max_tokens=80)
        fits(everywhere(server, body), schema)


def test_completions_too(server: Client) -> None:
    schema = obj(n={"type": "integer", "minimum": 0, "maximum": 9})
    body = server.completion("A number:", response_format=formatted(schema), max_tokens=40)
    fits(server.ok(COMPLETIONS, body), schema)


def test_forced_tokens_cost_few_steps(server: Client) -> None:
    before = server.metric("headway_step_seconds_count")
    answer = server.ok(CHAT, server.chat(response_format=const("one two three four five six seven eight"), max_tokens=60))
    assert server.metric("headway_step_seconds_count") - before < answer["usage"]["completion_tokens"] / 2
    assert answer["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] == 0  # drafts, but not the caller's
