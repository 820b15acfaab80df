"""Reported faults that concern every dialect, in each of them, at both speeds, streamed and not: over the real loop, with real
grammars, and a made-up engine, whose text means nothing but is the same each time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from cases import messages, responses
from cases.client import CHAT, Client
from websockets.sync.client import connect

from .made_up import made_up

Json = dict[str, Any]
FIELDS = "abcdef"
ADDRESS = {
    "type": "object",
    "properties": {field: {"type": "string", "maxLength": 2} for field in FIELDS},
    "required": list(FIELDS),
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with made_up({}, 0.0) as (_, client):
        yield client


@dataclass(frozen=True)
class Answer:
    """cut: whether it says that a limit ended it; called: that it is to be acted on; raw: arguments as text, where the dialect
    has them as text."""

    text: str
    calls: list[tuple[str, Any]]
    cut: bool
    called: bool
    output_tokens: int
    prompt_tokens: int


class Chat:
    path, limit = CHAT, "max_tokens"

    def body(self, text: str = "hi", tool: Json | None = None, schema: Any = None, fast: bool = False) -> Json:
        body: Json = {"messages": [{"role": "user", "content": text}], "service_tier": "fast" if fast else "default"}
        if tool is not None:
            body |= {"tools": [{"type": "function", "function": tool}], "tool_choice": "required", "parallel_tool_calls": False}
        if schema is not None:
            body |= {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
        return {"model": "m", "temperature": 0, **body}

    def ask(self, client: Client, body: Json) -> Answer:
        options = {"stream_options": {"include_usage": True}} if body.get("stream") else {}
        answer = client.ok(CHAT, {**body, **options})
        (choice,), usage = answer["choices"], answer["usage"]
        calls = [call["function"] for call in choice["message"].get("tool_calls") or ()]
        return Answer(
            choice["message"]["content"] or "",
            [(call["name"], parsed(call["arguments"])) for call in calls],
            choice["finish_reason"] == "length",
            choice["finish_reason"] == "tool_calls",
            usage["completion_tokens"],
            usage["prompt_tokens"],
        )

    def refusal(self, client: Client, body: Json) -> str:
        reply = client.post(CHAT, body)
        assert reply.status == 400, reply
        message: str = reply.error["message"]
        return message


class Messages:
    path, limit = messages.MESSAGES, "max_tokens"

    def body(self, text: str = "hi", tool: Json | None = None, schema: Any = None, fast: bool = False) -> Json:
        body: Json = {"messages": [{"role": "user", "content": text}], "speed": "fast" if fast else "standard"}
        if tool is not None:
            defined = {"name": tool["name"], "input_schema": tool.get("parameters", {"type": "object", "properties": {}})}
            body |= {"tools": [defined], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
        if schema is not None:
            body |= {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        return {"model": "m", "temperature": 0, "max_tokens": 800, **body}

    def ask(self, client: Client, body: Json) -> Answer:
        message = messages.ask(client, body)
        calls = [(block["name"], block["input"]) for block in message["content"] if block["type"] == "tool_use"]
        cut = message["stop_reason"] in ("max_tokens", "model_context_window_exceeded")
        output = message["usage"]["output_tokens"]
        called = message["stop_reason"] == "tool_use"
        return Answer(messages.text_of(message), calls, cut, called, output, messages.prompt_tokens(message))

    def refusal(self, client: Client, body: Json) -> str:
        reply = client.post(self.path, body, messages.HEADERS)
        assert reply.status == 400 and reply.json["error"]["type"] == "invalid_request_error", reply
        message: str = reply.json["error"]["message"]
        return message


class Responses:
    path, limit = responses.RESPONSES, "max_output_tokens"

    def body(self, text: str = "hi", tool: Json | None = None, schema: Any = None, fast: bool = False) -> Json:
        body: Json = {"input": text, "service_tier": "fast" if fast else "default"}
        if tool is not None:
            body |= {"tools": [{"type": "function", **tool}], "tool_choice": "required", "parallel_tool_calls": False}
        if schema is not None:
            body |= {"text": {"format": {"type": "json_schema", "name": "k", "schema": schema}}}
        return {"model": "m", "temperature": 0, **body}

    def ask(self, client: Client, body: Json) -> Answer:
        response = responses.ask(client, body)
        calls = responses.calls_of(response)
        incomplete, usage = response["status"] == "incomplete", response["usage"]
        assert (response["incomplete_details"] == {"reason": "max_output_tokens"}) is incomplete
        assert all((call["status"] == "completed") is is_json(call["arguments"]) for call in calls)
        return Answer(
            responses.text_of(response),
            [(call["name"], parsed(call["arguments"])) for call in calls],
            incomplete,
            bool(calls) and not incomplete,
            usage["output_tokens"],
            usage["input_tokens"],
        )

    def refusal(self, client: Client, body: Json) -> str:
        reply = client.post(self.path, body)
        assert reply.status == 400, reply
        message: str = reply.error["message"]
        return message


Dialect = Chat | Messages | Responses
DIALECTS = pytest.mark.parametrize("dialect", [Chat(), Messages(), Responses()], ids=["chat", "messages", "responses"])


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def parsed(text: str) -> Any:
    return json.loads(text) if is_json(text) else text


def everywhere(client: Client, dialect: Dialect, *, limit: int | None = None, **asked: Any) -> Answer:
    """The answer, which must be the same at both speeds, streamed and not."""
    limits = {} if limit is None else {dialect.limit: limit}
    answers = [
        dialect.ask(client, {**dialect.body(**asked, fast=fast), **limits, "stream": stream})
        for fast in (False, True)
        for stream in (False, True)
    ]
    first = answers[0]
    for other in answers[1:]:
        assert (other.text, other.cut, other.called) == (first.text, first.cut, first.called)
        assert (other.output_tokens, other.prompt_tokens) == (first.output_tokens, first.prompt_tokens)
        if first.called:
            assert other.calls == first.calls
    return first


@DIALECTS
def test_limits_are_exact_and_an_upper_bound(client: Client, dialect: Dialect) -> None:  # B5, B9
    for limit in (1, 2, 3, 17):
        assert everywhere(client, dialect, limit=limit).output_tokens == limit
    for limit in (900, 65_535, 2**31, 2**63):
        assert dialect.ask(client, {**dialect.body(), dialect.limit: limit}).output_tokens > 17
    for value in (0, -1, 2.5, "5", True, []):
        assert f"'{dialect.limit}'" in dialect.refusal(client, {**dialect.body(), dialect.limit: value})


@DIALECTS
def test_a_call_that_is_cut_is_none(client: Client, dialect: Dialect) -> None:  # B7
    tool = {"name": "send", "parameters": ADDRESS}
    whole = everywhere(client, dialect, tool=tool)
    assert whole.called and not whole.cut
    jsonschema.validate(whole.calls[0][1], ADDRESS)
    for limit in range(1, whole.output_tokens, 9):
        answer = everywhere(client, dialect, tool=tool, limit=limit)
        assert answer.cut and not answer.called and answer.output_tokens == limit


@DIALECTS
def test_a_tool_without_arguments_is_called_with_none(client: Client, dialect: Dialect) -> None:  # G3
    for tool in ({"name": "now"}, {"name": "now", "parameters": {"type": "object", "properties": {}}}):
        closed = {**tool, "parameters": {**tool.get("parameters", {"type": "object"}), "additionalProperties": False}}
        assert everywhere(client, dialect, tool=closed).calls == [("now", {})]
    assert everywhere(client, dialect, tool={"name": "now"}).calls == [("now", {})]


COLOUR = {"enum": ["red", "blue"]}
NUMBER = {"type": "object", "properties": {"p": {"type": "integer"}}, "required": ["p"]}
WITH_NUMBER = {"type": "object", "properties": {"p": {"$ref": "#/$defs/A"}}, "required": ["p"]}
KEPT: list[Any] = [
    {"type": "object", "properties": {"c": {"$ref": "#/$defs/C"}}, "required": ["c"], "$defs": {"C": COLOUR}},
    {"$ref": "#/$defs/C", "$defs": {"C": WITH_NUMBER, "A": NUMBER}},
    {"$ref": "#/$defs/C", "$defs": {"A": NUMBER, "C": WITH_NUMBER}},
    {"type": "integer", "minimum": -7, "maximum": 3},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 1000},
    {"enum": ["🐈", "龜", 'naïve "q" \\ /', "\u0000"]},
    {"type": "object", "properties": {"größe 🫠": {"type": "boolean"}}, "required": ["größe 🫠"]},
    {"const": ""},
    {"enum": [None, True, 1.5, {"a": []}]},
    {},
    {"type": "object"},
]
REFUSED = [
    (
        {
            "type": "object",
            "properties": {"score": {"type": "integer", "multipleOf": 5}},
            "patternProperties": {"^score$": {"type": "integer"}},
            "additionalProperties": False,
        },
        "patternProperties",
    ),
    (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/X", "$defs": {"X": {"type": "integer"}}}}, "required": ["a"]},
        "#/$defs/X",
    ),
    ({"type": "array", "uniqueItems": True}, "uniqueItems"),
]


@DIALECTS
@pytest.mark.parametrize("schema", KEPT, ids=[str(number) for number in range(len(KEPT))])
def test_text_fits_its_schema_or_is_cut(client: Client, dialect: Dialect, schema: Any) -> None:  # F1, F3, F7
    answer = everywhere(client, dialect, schema=schema, limit=120)
    if not answer.cut:
        jsonschema.validate(json.loads(answer.text), schema, jsonschema.Draft202012Validator)
    else:
        assert answer.output_tokens == 120


@DIALECTS
@pytest.mark.parametrize(("schema", "told"), REFUSED)
def test_a_schema_that_can_not_be_kept_is_refused(client: Client, dialect: Dialect, schema: Any, told: str) -> None:  # F1, F5
    assert told in dialect.refusal(client, dialect.body(schema=schema))


@pytest.mark.parametrize("asked", [{}, {"tool": {"name": "send", "parameters": ADDRESS}}])
def test_message_start_has_the_prompts_tokens(client: Client, asked: Json) -> None:  # H1
    for number, fast in enumerate((False, True)):
        body = Messages().body(f"question {number} " * 9, fast=fast, **asked)
        with messages.open_events(client, body) as events:
            streamed = list(events)
        start, end = streamed[0]["message"]["usage"], streamed[-2]["usage"]
        whole = Messages().ask(client, body)
        counted = client.post(messages.COUNT, body, messages.HEADERS).json["input_tokens"]
        assert {messages.prompt_tokens({"usage": usage}) for usage in (start, end)} == {counted} == {whole.prompt_tokens}
        assert start["input_tokens"] > 0 and end["output_tokens"] == whole.output_tokens


@DIALECTS
def test_a_key_over_its_limit_is_told_when_to_come_again(dialect: Dialect) -> None:  # J1
    with made_up({"limits": {"standard": {"requests": 3}}}, 0.0) as (_, client):
        body = {**dialect.body(), dialect.limit: 2}
        with ThreadPoolExecutor(10) as pool:
            replies = list(pool.map(lambda _: client.post(dialect.path, body), range(20)))
        assert sorted(reply.status for reply in replies) == [200] * 3 + [429] * 17
        for reply in replies:
            left = {
                int(value) for name, value in reply.headers.items() if "remaining-requests" in name or "requests-rem" in name
            }
            assert len(left) == 1 and min(left) >= 0 and (reply.status == 200 or left == {0})
            if reply.status == 429:
                kind = reply.json["error"]["type"]
                assert kind == "rate_limit_error" and 1 <= int(reply.headers["retry-after"]) <= 60
        if isinstance(dialect, Responses):
            with connect(f"ws://{client.host}:{client.port}{dialect.path}", compression=None) as wire:
                wire.send(json.dumps({"type": "response.create", **body}))
                told = json.loads(wire.recv(timeout=20))
            assert (told["type"], told["status"]) == ("error", 429)
            assert 1 <= int(told["error"]["headers"]["retry-after"]) <= 60
        assert client.metric("headway_limit_holds") == 0
