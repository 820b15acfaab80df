"""POST /v1/messages over a scripted model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases.messages import COUNT, MESSAGES, join_events, text_of
from starlette.testclient import TestClient

from headway.config import ServerSettings
from headway.errors import RequestError
from headway.modes import ModeName
from headway.server.anthropic.shapes import MessageAnswer, MessageError, TokenCount
from server.scripted import CACHED, Script, World

Json = dict[str, Any]
TOOL: Json = {"name": "now", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}
CALL = b'<tool_call>{"name": "now", "arguments": {"a": 1}}</tool_call>'


def post(world: World, path: str = MESSAGES, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20, **fields}
    return TestClient(world.app).post(f"{path}?beta=true", json=body, headers=headers or {})


def message(response: Any) -> Json:
    """Whole, or joined from its events."""
    assert response.status_code == 200, response.text
    if not response.headers["content-type"].startswith("text/event-stream"):
        return MessageAnswer.model_validate(response.json()).model_dump()
    *framed, end = response.content.decode().split("\n\n")
    assert end == "" and all(event.startswith("event: ") for event in framed)
    return join_events([json.loads(event.split("\ndata: ")[1]) for event in framed])


def refused(response: Any, status: int, kind: str) -> str:
    """The message of an error in Anthropic's form."""
    error = MessageError.model_validate(response.json())
    assert (response.status_code, error.error.type) == (status, kind)
    assert error.request_id == response.headers["request-id"] == response.headers["x-request-id"]
    return error.error.message


@pytest.mark.parametrize("stream", [False, True])
def test_a_message(stream: bool) -> None:
    world = World(Script(tokens=tuple("héllo".encode())))
    answer = message(post(world, stream=stream))
    assert answer["content"] == [{"type": "text", "text": "héllo"}]
    assert (answer["role"], answer["model"], answer["stop_reason"], answer["stop_sequence"]) == (
        "assistant",
        "m",
        "end_turn",
        None,
    )
    assert answer["id"].startswith("msg_")
    usage = answer["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == len("<user>hi")
    assert usage["cache_read_input_tokens"] == CACHED and usage["output_tokens"] == 6
    assert (usage["speed"], usage["service_tier"], answer["headway"]["mode"]) == ("standard", "standard", "standard")


@pytest.mark.parametrize("stream", [False, True])
def test_why_it_stopped(stream: bool) -> None:
    world = World(Script(tokens=tuple(b"some text here")), context=64)
    for fields, reason, sequence, text in (
        ({"max_tokens": 4}, "max_tokens", None, "some"),
        ({"stop_sequences": ["xt", "zz"]}, "stop_sequence", "xt", "some te"),
        ({}, "end_turn", None, "some text here"),
    ):
        answer = message(post(world, stream=stream, **fields))
        assert (answer["stop_reason"], answer["stop_sequence"], text_of(answer)) == (reason, sequence, text)
    full = World(Script(tokens=(65,), times=100), context=32)
    assert message(post(full, stream=stream, max_tokens=1000))["stop_reason"] == "model_context_window_exceeded"
    assert message(post(full, stream=stream, max_tokens=3))["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("stream", [False, True])
def test_tool_use(stream: bool) -> None:
    world = World(Script(tokens=tuple(b"Look. " + CALL + b"\n" + CALL)), context=400)
    answer = message(post(world, stream=stream, tools=[TOOL], max_tokens=300))
    text, one, two = answer["content"]
    assert (text["text"], one["name"], one["input"], two["input"]) == ("Look.", "now", {"a": 1}, {"a": 1})
    assert one["id"].startswith("toolu_") and one["id"] != two["id"]
    assert answer["stop_reason"] == "tool_use"
    single = message(
        post(
            world, stream=stream, tools=[TOOL], max_tokens=300, tool_choice={"type": "auto", "disable_parallel_tool_use": True}
        )
    )
    assert [block["type"] for block in single["content"]] == ["text", "tool_use"]
    for fields in ({"tools": [TOOL], "tool_choice": {"type": "none"}}, {}):
        plain = message(post(world, stream=stream, max_tokens=300, **fields))
        assert "<tool_call>" in text_of(plain) and plain["stop_reason"] == "end_turn"


@pytest.mark.parametrize("length", range(1, len(CALL) + 1, 7))
def test_a_cut_call_never_counts_as_one(length: int) -> None:
    world = World(Script(tokens=tuple(CALL)), context=400)
    streamed = message(post(world, stream=True, tools=[TOOL], max_tokens=length))
    whole = message(post(world, tools=[TOOL], max_tokens=length))
    assert streamed["stop_reason"] == whole["stop_reason"] == "max_tokens"
    assert [block["type"] for block in streamed["content"]] == [block["type"] for block in whole["content"]]


def test_parameters_reach_the_engine_and_unknown_ones_are_ignored() -> None:
    world = World()
    fields = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "stop_sequences": ["a", "b", "c", "d", "e"],
        "metadata": {"user_id": "u"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "service_tier": "auto",
        "context_management": {"edits": []},
        "output_config": {"effort": "high"},
        "cache_control": {"type": "ephemeral"},
        "speed": None,
    }
    assert post(world, headers={"anthropic-beta": "fast-mode-2026-02-01,other"}, **fields).status_code == 200
    request = world.generator.requests[0]
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.top_k) == (0.5, 0.9, 40)
    assert request.stop == ("a", "b", "c", "d", "e") and request.mode is ModeName.STANDARD


@pytest.mark.parametrize("stream", [False, True])
def test_speed(stream: bool) -> None:
    beta = {"anthropic-beta": "fast-mode-2026-02-01"}
    for fields, headers, mode in (
        ({"speed": "fast"}, {}, "fast"),
        ({"speed": "fast"}, beta, "fast"),
        ({"speed": "standard"}, beta, "standard"),
        ({"model": "m-fast"}, {}, "fast"),
        ({"model": "m-fast", "speed": "standard"}, {}, "fast"),
        ({}, {"x-slo-tpot-ms": "25"}, "fast"),
    ):
        answer = message(post(World(), headers=headers, stream=stream, **fields))
        assert (answer["usage"]["speed"], answer["headway"]["mode"]) == (mode, mode)
        assert answer["model"] == fields.get("model", "m")
    assert "standard, fast" in refused(post(World(), speed="ludicrous"), 400, "invalid_request_error")


def full(mode: ModeName | None = None) -> Any:
    """Refuses one mode, or both."""
    return lambda request: RequestError(429, "full", retry_after=2.5) if mode in (None, request.mode) else None


@pytest.mark.parametrize("stream", [False, True])
def test_no_fast_seat_is_a_429_and_the_same_without_speed_is_served(stream: bool) -> None:
    world = World()
    world.generator.refuse = full(ModeName.FAST)
    response = post(world, stream=stream, speed="fast")
    refused(response, 429, "rate_limit_error")
    assert (response.headers["retry-after"], response.headers["retry-after-ms"]) == ("3", "2500")
    assert response.headers["anthropic-fast-output-tokens-remaining"] == "0"
    assert response.headers["anthropic-fast-output-tokens-limit"] == str(2 * 50 * 60)
    assert response.headers["anthropic-fast-output-tokens-reset"].endswith("Z")
    assert not any(name.startswith("anthropic-ratelimit") for name in response.headers)
    assert message(post(world, stream=stream))["usage"]["speed"] == "standard"
    assert not world.generator.cancelled


def test_no_seat_at_all_is_an_overload() -> None:
    world = World()
    world.generator.refuse = full()
    response = post(world)
    refused(response, 529, "overloaded_error")
    assert response.headers["retry-after"] == "3"
    assert response.headers["anthropic-ratelimit-requests-remaining"] == "0"
    refused(post(world, headers={"x-slo-ttft-ms": "100"}), 429, "rate_limit_error")


def test_limits_are_said_with_a_success() -> None:
    headers = post(World()).headers
    assert headers["anthropic-ratelimit-requests-limit"] == "16"
    assert 0 < int(headers["anthropic-ratelimit-requests-remaining"]) <= 16
    assert headers["anthropic-ratelimit-output-tokens-limit"] == str(8 * 20 * 60)
    assert "anthropic-fast-output-tokens-limit" in post(World(), speed="fast", stream=True).headers


def test_errors_have_their_types() -> None:
    world = World()
    missing = TestClient(world.app).post(MESSAGES, json={"model": "m", "messages": [{"role": "user", "content": "x"}]})
    assert "'max_tokens' is missing" in refused(missing, 400, "invalid_request_error")
    for fields in (
        {"max_tokens": 0},
        {"temperature": 1.5},
        {"messages": []},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"stop_sequences": [""]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": {}}]}]},
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool"}, "tools": [TOOL]},
        {"tool_choice": {"type": "tool", "name": "unknown"}, "tools": [TOOL]},
        {"output_config": {"format": {"type": "xml"}}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"not": {}}}}},
        {
            "output_config": {"format": {"type": "json_schema", "schema": {}}},
            "tool_choice": {"type": "any"},
            "tools": [TOOL],
        },
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"name": "x"}]},
    ):
        refused(post(world, **fields), 400, "invalid_request_error")
    refused(post(world, model="other"), 404, "not_found_error")
    refused(TestClient(world.app).get("/v1/messages/nothing"), 404, "not_found_error")
    refused(TestClient(world.app).get(MESSAGES), 405, "invalid_request_error")
    small = World(settings=ServerSettings(max_body_mb=0.0001))
    refused(post(small, system="x" * 200), 413, "request_too_large")
    small.app.state.drain.begin()
    refused(post(small), 529, "overloaded_error")


def test_a_thread_is_refused_in_the_way_after_which_sdks_send_the_whole_conversation() -> None:
    world = World()
    for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}):
        response = post(world, thread=thread, tool_choice={"type": "any"})  # without tools: they are in the thread
        assert "Send the whole one in 'messages'" in refused(response, 400, "invalid_request_error")
        assert response.json()["error"]["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert message(post(world, thread=None))["stop_reason"] == "end_turn"


def test_a_prompt_that_is_too_long_says_so_in_the_words_that_clients_know() -> None:
    for size in (64, 100_000):
        response = post(World(context=64), messages=[{"role": "user", "content": "x" * size}])
        assert refused(response, 400, "invalid_request_error").startswith("prompt is too long: ")
    assert "70 tokens > 63 maximum" in post(World(context=64), messages=[{"role": "user", "content": "x" * 64}]).text


@pytest.mark.parametrize(("end", "status", "kind"), [("error", 500, "api_error"), ("cancelled", 529, "overloaded_error")])
def test_a_failure_ends_the_stream_with_an_error_event(end: str, status: int, kind: str) -> None:
    script = Script(tokens=tuple(b"abc"), end=end, error="the engine failed" if end == "error" else None)
    refused(post(World(script)), status, kind)
    response = post(World(script), stream=True)
    last = response.content.decode().split("\n\n")[-2]
    assert last.startswith("event: error\n")
    error = MessageError.model_validate_json(last.split("\ndata: ")[1])
    assert error.error.type == kind and error.request_id == response.headers["request-id"]


def test_a_long_silence_is_filled_with_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.server.answer.SILENCE_SECONDS", 0.02)
    response = post(World(Script(tokens=(65,), pause=0.2)), stream=True)
    assert response.content.startswith(b'event: ping\ndata: {"type":"ping"}\n\n')
    assert text_of(message(response)) == "A"


def test_tokens_are_counted_as_the_message_has_them() -> None:
    world = World(context=200)
    fields: Json = {"system": "Be brief.", "tools": [TOOL]}
    usage = message(post(world, **fields))["usage"]
    counted = TokenCount.model_validate(post(world, COUNT, **fields, speed="fast").json())
    assert (
        counted.input_tokens
        == usage["input_tokens"] + usage["cache_read_input_tokens"]
        == len(world.generator.requests[0].prompt)
    )
    assert len(world.generator.requests) == 1
    assert post(world, COUNT, messages=[{"role": "user", "content": "x" * 500}]).json()["input_tokens"] > 500
    refused(post(world, COUNT, model="other"), 404, "not_found_error")


def test_the_last_turn_of_the_assistant_is_continued() -> None:
    world = World()
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "I think"}]}]
    assert post(world, messages=turns).status_code == 200
    assert bytes(world.generator.requests[0].prompt) == b"<user>hiI think"
    turns[1]["content"] = "I think "
    assert "white space" in refused(post(world, messages=turns), 400, "invalid_request_error")
    refused(post(world, messages=turns[1:]), 400, "invalid_request_error")


def test_models_in_the_shape_of_who_asks() -> None:
    client = TestClient(World().app)
    version = {"anthropic-version": "2023-06-01"}
    listed = client.get("/v1/models?limit=20", headers=version).json()
    assert [card["id"] for card in listed["data"]] == ["m", "m-fast"]
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, "m", "m-fast")
    card = client.get("/v1/models/m-fast", headers=version).json()
    assert card == listed["data"][1] and card["type"] == "model" and card["max_input_tokens"] == 63
    assert card["created_at"] == "1970-01-01T00:00:01Z"
    refused(client.get("/v1/models/x", headers=version), 404, "not_found_error")
    assert client.get("/v1/models").json()["object"] == "list"


def test_a_key_is_the_same_in_either_header() -> None:
    world = World()
    for headers in ({"x-api-key": "k"}, {"authorization": "Bearer k"}, {"x-api-key": "other"}, {}):
        post(world, headers=headers)
    keys = [request.key for request in world.generator.requests]
    assert keys[0] == keys[1] and len(set(keys)) == 3
