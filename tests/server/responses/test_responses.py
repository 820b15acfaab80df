"""POST /v1/responses over a scripted model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases.responses import RESPONSES, calls_of, checked, join_events, text_of
from starlette.testclient import TestClient

from headway.config import ServerSettings
from headway.errors import RequestError
from headway.modes import ModeName
from headway.server.openai.shapes import ErrorBody
from headway.server.responses.shapes import ResponseAnswer
from server.scripted import CACHED, Script, World

Json = dict[str, Any]
TOOL: Json = {"type": "function", "name": "now", "description": "The time.", "parameters": {"type": "object"}}
CALL = b'<tool_call>{"name": "now", "arguments": {"a": 1}}</tool_call>'
BOTH = pytest.mark.parametrize("stream", [False, True])


def post(world: World, path: str = RESPONSES, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    return TestClient(world.app).post(path, json={"model": "m", "input": "hi", **fields}, headers=headers or {})


def response_of(reply: Any) -> Json:
    """Whole, or joined from its events."""
    assert reply.status_code == 200, reply.text
    if reply.headers["content-type"].startswith("text/event-stream"):
        *framed, end = reply.content.decode().split("\n\n")
        assert end == ""
        events = [frame.split("\ndata: ") for frame in framed]
        response = join_events(json.loads(data) for _, data in events)
        assert all(name == f"event: {json.loads(data)['type']}" for name, data in events)
    else:
        response = checked(reply.json())
    return ResponseAnswer.model_validate(response).model_dump()


def refused(reply: Any, param: str | None, status: int = 400) -> str:
    error = ErrorBody.model_validate(reply.json()).error
    assert (reply.status_code, error.param) == (status, param), error
    return error.message


def prompts(world: World) -> list[str]:
    return [bytes(request.prompt).decode() for request in world.generator.requests]


@BOTH
def test_a_response(stream: bool) -> None:
    world = World(Script(tokens=tuple("héllo".encode())))
    response = response_of(post(world, stream=stream, instructions="Be brief.", metadata={"a": "b"}, user="u"))
    (message,) = response["output"]
    assert (message["role"], message["status"], text_of(response)) == ("assistant", "completed", "héllo")
    assert response["id"].startswith("resp_") and message["id"].startswith("msg_")
    assert (response["status"], response["incomplete_details"], response["error"]) == ("completed", None, None)
    assert response["completed_at"] >= response["created_at"]
    assert (response["instructions"], response["metadata"], response["user"]) == ("Be brief.", {"a": "b"}, "u")
    prompt = len("<system>Be brief.<user>hi")
    assert response["usage"] == {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": CACHED, "cache_write_tokens": 0},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + 6,
    }
    assert (response["service_tier"], response["headway"]["mode"]) == ("default", "standard")
    assert response["time_info"]["total_time"] == 1.75


@BOTH
def test_a_length_that_is_reached_makes_it_incomplete(stream: bool) -> None:
    for fields, context, text in (({"max_output_tokens": 4}, 64, "some"), ({}, 16, "some tex")):
        response = response_of(post(World(Script(tokens=tuple(b"some text here")), context=context), stream=stream, **fields))
        assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
        assert (text_of(response), response["output"][0]["status"], response["completed_at"]) == (text, "incomplete", None)


@BOTH
def test_a_response_without_a_limit_gets_the_default_one(stream: bool) -> None:
    world = World(Script(times=10), settings=ServerSettings(default_max_tokens=5))
    response = response_of(post(world, stream=stream))
    assert (text_of(response), response["status"], response["max_output_tokens"]) == ("scrip", "incomplete", None)
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    response_of(post(world, stream=stream, max_output_tokens=9))
    assert world.generator.requests[-1].max_tokens == 9  # a limit of its own may be higher


@BOTH
def test_an_output_without_text_is_an_empty_message(stream: bool) -> None:
    for include in ([], ["message.output_text.logprobs"]):
        world = World(Script(tokens=[257, 258]))
        response = response_of(post(world, stream=stream, stop="Hello", include=include))
        (message,) = response["output"]
        assert (text_of(response), message["status"], response["status"]) == ("", "completed", "completed")


@BOTH
def test_logprobs_where_they_are_asked_for(stream: bool) -> None:
    world = World(Script(tokens=[260, 261, 65]))
    response = response_of(post(world, stream=stream, include=["message.output_text.logprobs"], top_logprobs=2))
    entries = response["output"][0]["content"][0]["logprobs"]
    assert [entry["bytes"] for entry in entries] == [[0xF0, 0x9F], [0xAB, 0xA0], [65]]
    assert {len(entry["top_logprobs"]) for entry in entries} == {2}
    assert response_of(post(world, stream=stream, top_logprobs=2))["output"][0]["content"][0]["logprobs"] == []


@BOTH
def test_function_calls(stream: bool) -> None:  # G1
    world = World(Script(tokens=tuple(b"Look. " + CALL + b"\n" + CALL)), context=400)
    response = response_of(post(world, stream=stream, tools=[TOOL]))
    text, one, two = response["output"]
    assert text["content"][0]["text"] == "Look."
    assert (one["name"], json.loads(one["arguments"]), two["arguments"]) == ("now", {"a": 1}, one["arguments"])
    assert one["call_id"].startswith("call_") and one["id"].startswith("fc_") and one["call_id"] != two["call_id"]
    assert {item["status"] for item in response["output"]} == {"completed"} == {response["status"]}
    assert response["tools"] == [{**TOOL, "strict": None}] and response["tool_choice"] == "auto"
    single = response_of(post(world, stream=stream, tools=[TOOL], parallel_tool_calls=False))
    assert [item["type"] for item in single["output"]] == ["message", "function_call"]
    assert single["parallel_tool_calls"] is False
    for fields in ({"tools": [TOOL], "tool_choice": "none"}, {}):
        plain = response_of(post(world, stream=stream, **fields))
        assert "<tool_call>" in text_of(plain) and not calls_of(plain)


@pytest.mark.parametrize("length", range(1, len(CALL) + 1, 5))
def test_a_cut_call_is_never_complete(length: int) -> None:  # B7
    world = World(Script(tokens=tuple(CALL)), context=400)
    streamed = response_of(post(world, stream=True, tools=[TOOL], max_output_tokens=length))
    whole = response_of(post(world, tools=[TOOL], max_output_tokens=length))
    for response in (streamed, whole):
        assert response["status"] == "incomplete"
        for call in calls_of(response):
            assert (call["status"] == "completed") == (call["arguments"] == '{"a": 1}')
    assert [item["type"] for item in streamed["output"]] == [item["type"] for item in whole["output"]]


def test_input_in_all_its_forms() -> None:
    world = World(context=400)
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "now", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "12:00"}
    hi = {"role": "user", "content": "hi"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]}
    for given, prompt in (
        ("hi", "<user>hi"),
        ([hi], "<user>hi"),
        ([{"type": "message", **hi, "content": [{"type": "input_text", "text": part} for part in "hi"]}], "<user>hi"),
        ([{"role": "developer", "content": "Be."}, hi], "<developer>Be.<user>hi"),
        ([hi, said, hi], "<user>hi<assistant>yo<user>hi"),
        ([hi, {**said, "content": [{"type": "refusal", "refusal": "no"}]}, hi], "<user>hi<assistant>no<user>hi"),
        ([hi, {"type": "reasoning", "id": "rs_1", "summary": []}, said], "<user>hi<assistant>yo"),
        ([hi, call, output], "<user>hi<assistant><tool>12:00"),
        ([hi, said, {**call, "arguments": ""}, output], "<user>hi<assistant>yo<tool>12:00"),
        ([hi, call, {**output, "output": [{"type": "input_text", "text": "12:00"}]}], "<user>hi<assistant><tool>12:00"),
    ):
        reply = post(world, input=given)
        assert reply.status_code == 200, (given, reply.text)
        assert prompts(world)[-1] == prompt


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (None, "input"),
        ([], "input"),
        ([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": []}], "input[0].content"),
        ([{"role": "user", "content": ["hi"]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_text", "text": 5}]}], "input[0].content[0].text"),
        ([{"role": "user"}], "input[0].content"),
        ([{"role": "robot", "content": "hi"}], "input[0].role"),
        ([{"role": ["user"], "content": "hi"}], "input[0].role"),
        ([{"type": "item_reference", "id": "msg_1"}], "input[0]"),
        ([{"type": "web_search_call", "id": "ws_1"}], "input[0]"),
        ([{"type": ["message"], "role": "user", "content": "hi"}], "input[0]"),
        ([{"type": "function_call", "name": "now", "arguments": "{}"}], "input[0].call_id"),
        ([{"type": "function_call", "name": "now", "call_id": "c", "arguments": {}}], "input[0].arguments"),
        ([{"type": "function_call", "name": "now", "call_id": "c", "arguments": {"a": 1}}], "input[0].arguments"),
        ([{"type": "function_call_output", "output": "x"}], "input[0].call_id"),
        ([{"type": "function_call_output", "call_id": "c", "output": 5}], "input[0].output"),
    ],
)
def test_items_that_are_not_understood_are_named(given: Any, place: str) -> None:
    assert refused(post(World(), input=given), place).startswith(f"'{place}' ")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "always", "tools": [TOOL]}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "unknown"}, "tools": [TOOL]}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"not": {}}}}}, "text.format"),
        ({"text": {"format": {"type": "json_object"}}, "tool_choice": "required", "tools": [TOOL]}, "text.format"),
        ({"tools": [TOOL, {"type": "web_search"}]}, "tools[1]"),
        ({"tools": [{"type": "custom", "name": "patch"}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_tokens": 5}, "max_tokens"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"n": 2}, "n"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"truncation": "never"}, "truncation"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        ({"metadata": {"k" * 65: "x"}}, "metadata"),
        ({"metadata": {"k": "x" * 513}}, "metadata"),
        ({"metadata": {"k": 5}}, "metadata"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"temperature": 3}, "temperature"),
        ({"service_tier": "ultrafast"}, "service_tier"),
        ({"input": 5}, "input"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
    ],
)
@BOTH
def test_what_can_not_be_served_is_named(fields: Json, param: str, stream: bool) -> None:
    refused(post(World(), stream=stream, **fields), param)


def test_parameters_reach_the_engine_and_unknown_ones_are_ignored() -> None:
    world = World()
    fields = {
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "max_output_tokens": 9,
        "reasoning": {"effort": "high"},
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
        "stream_options": {"include_obfuscation": False},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "context_management": [{"type": "compaction"}],
        "max_tool_calls": 3,
        "background": False,
        "conversation": None,
    }
    response = response_of(post(world, stream=True, **fields))
    request = world.generator.requests[0]
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.seed) == (0.5, 0.9, 7)
    assert (request.max_tokens, request.sampling.logprobs) == (9, None)
    repeated = ("temperature", "top_p", "max_output_tokens", "prompt_cache_key")
    assert [response[name] for name in repeated] == [0.5, 0.9, 9, "k"]


@BOTH
def test_speed(stream: bool) -> None:
    for fields, mode, tier in (
        ({"service_tier": "fast"}, "fast", "fast"),
        ({"service_tier": "priority"}, "fast", "priority"),
        ({"service_tier": "auto"}, "standard", "default"),
        ({"model": "m-fast"}, "fast", "priority"),
    ):
        response = response_of(post(World(), stream=stream, **fields))
        assert (response["service_tier"], response["headway"]["mode"]) == (tier, mode)
    full = World()
    full.generator.refuse = lambda request: RequestError(429, "full", retry_after=2) if request.mode is ModeName.FAST else None
    response = response_of(post(full, stream=stream, service_tier="fast"))
    assert (response["service_tier"], response["headway"]["mode"]) == ("default", "standard")
    reply = post(full, stream=stream, headers={"x-slo-tpot-ms": "25"})
    assert reply.status_code == 429 and reply.headers["retry-after"] == "2"
    assert "x-ratelimit-remaining-requests" in reply.headers


@pytest.mark.parametrize(("end", "status"), [("error", 500), ("cancelled", 503)])
def test_a_failure_is_the_last_event(end: str, status: int) -> None:  # H3
    script = Script(tokens=tuple(b"abc"), end=end, error="the engine failed" if end == "error" else None)
    assert post(World(script)).status_code == status
    response = response_of(post(World(script), stream=True))
    assert response["status"] == "failed" and response["error"]["code"] == "server_error"
    assert response["output"][0]["status"] == "incomplete" and response["usage"] is None


def test_a_failure_before_the_first_event_is_a_plain_error() -> None:
    reply = post(World(Script(tokens=(65,), end="error", error="the engine failed")), stream=True)
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")


@BOTH
def test_a_response_that_only_prepares(stream: bool) -> None:
    world = World(context=400)
    response = response_of(post(world, stream=stream, generate=False))
    assert (response["status"], response["output"], world.generator.requests[0].max_tokens) == ("completed", [], 1)
    assert post(world, previous_response_id=response["id"], input="now").status_code == 200
    assert prompts(world)[1] == "<user>hi<user>now"


def test_truncation_leaves_out_the_oldest_turns() -> None:
    turns = [{"role": "user" if number % 2 else "assistant", "content": f"turn {number}"} for number in range(1, 20)]
    given = [{"role": "system", "content": "Be."}, *turns]
    call = {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x" * 100}
    refused(post(World(context=128), input=given), "input")
    refused(post(World(context=128), input=given, truncation="disabled"), "input")
    for extra in ([], [call, output]):
        world = World(context=128)
        assert post(world, input=[*extra, *given], truncation="auto", max_output_tokens=8).status_code == 200
        kept = prompts(world)[0]
        assert kept.startswith("<system>Be.<") and kept.endswith("<user>turn 19") and "<tool>" not in kept
        assert 128 - 8 - len("<assistant>turn 10") < len(kept) <= 128 - 8
    alone = [{"role": "user", "content": "x" * 200}]
    assert "at most" not in refused(post(World(context=128), input=alone, truncation="auto"), "input")


def test_input_tokens_are_counted_as_the_response_has_them() -> None:
    world = World(context=400)
    fields: Json = {"instructions": "Be brief.", "tools": [TOOL]}
    counted = post(world, f"{RESPONSES}/input_tokens", **fields).json()
    assert counted == {
        "object": "response.input_tokens",
        "input_tokens": response_of(post(world, **fields))["usage"]["input_tokens"],
    }
    assert len(world.generator.requests) == 1
    refused(post(world, f"{RESPONSES}/input_tokens", model="other"), "model", 404)
