"""Anthropic's Node SDK. What it gave is held against the types of the Python SDK, which know every field."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.beta import BetaMessage
from cases.client import Client
from cases.messages import join_events
from cases.responses import OURS
from server.live import live

from clients.programs import ONLY_WHEN_ASKED, Program, Told

pytestmark = ONLY_WHEN_ASKED
SERVED = {"none": "standard", "null": "standard", "standard": "standard", "fast": "fast", "alias": "fast"}
REAL = ("models", "messages", "messagesStream", "beta", "count", "tools", "toolRunner", "parse", "errors")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("anthropic.mjs", tmp_path_factory.mktemp("home"), {})


@pytest.fixture(scope="module")
def told(program: Program, server: Client) -> Told:
    return program.steps(server, *REAL)


def known(type_: Any, answer: Any) -> Any:
    """An answer has the fields of its type, and no others than ours."""
    message = type_.model_validate({name: value for name, value in answer.items() if name not in OURS})
    assert not message.model_extra and not message.usage.model_extra
    return message


def test_models(told: Told, server: Client) -> None:
    cards = told["models"]
    assert [card["id"] for card in cards["listed"]] == [server.model, f"{server.model}-fast"]
    assert cards["one"] == cards["listed"][1]


def test_messages_at_every_speed(told: Told, server: Client) -> None:
    text = told["messages"]["none"]["content"][0]["text"]
    for way, answer in told["messages"].items():
        message = known(Message, answer)
        assert message.usage.speed == answer["headway"]["mode"] == SERVED[way]
        assert message.model == server.model + ("-fast" if way == "alias" else "")
        assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 8)
        assert message.usage.input_tokens + message.usage.cache_read_input_tokens == told["count"]["input_tokens"]
        assert message.content[0].text == text != ""
    assert known(BetaMessage, told["beta"]).usage.speed == "fast"


def test_the_stream_adds_up_to_the_same(told: Told) -> None:
    for way, streamed in told["messagesStream"].items():
        text = told["messages"][way]["content"][0]["text"]
        assert streamed["text"] == streamed["final"]["content"][0]["text"] == text
        joined = join_events(streamed["events"])
        assert joined["usage"]["speed"] == streamed["final"]["usage"]["speed"] == SERVED[way]
        assert (joined["stop_reason"], joined["usage"]["output_tokens"]) == ("max_tokens", 8)


def test_tools(told: Told) -> None:
    for speed, answers in told["tools"].items():
        for message in (answers["whole"], answers["streamed"]):
            (call,) = message["content"]
            assert (message["stop_reason"], call["type"], call["name"]) == ("tool_use", "tool_use", "weather")
            assert call["input"]["city"] in ("Oslo", "Rome") and call["id"].startswith("toolu_")
            assert message["usage"]["speed"] == speed
        assert answers["pieces"] in ('{"city": "Oslo"}', '{"city": "Rome"}')


def test_the_tool_runner_goes_on_with_what_the_tool_said(told: Told) -> None:
    ran = told["toolRunner"]
    assert len(ran["called"]) == 2 and ran["called"][0]["city"] in ("Oslo", "Rome")
    usage = ran["last"]["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] > told["count"]["input_tokens"] + 100  # tool and turns


def test_a_schema_is_parsed(told: Told) -> None:
    assert told["parse"]["name"] in ("Ada", "Alan") and isinstance(told["parse"]["grown"], bool)


def test_errors_have_their_classes(told: Told) -> None:
    errors = told["errors"]
    assert {name: (error["class"], error["status"], error["type"]) for name, error in errors.items()} == {
        "bad": ("BadRequestError", 400, "invalid_request_error"),
        "long": ("BadRequestError", 400, "invalid_request_error"),
        "model": ("NotFoundError", 404, "not_found_error"),
        "path": ("NotFoundError", 404, "not_found_error"),
    }
    assert "prompt is too long: " in errors["long"]["message"]
    assert all(error["requestId"].startswith("req_") for error in errors.values())


def test_without_a_fast_seat_it_is_refused_and_served_without_speed(program: Program) -> None:
    with live({"tokens": [120]}, fast_seats=0) as (_, client):
        told = program.steps(client, "noFastSeat")["noFastSeat"]
    refused = told["refused"]
    assert (refused["class"], refused["status"], refused["type"]) == ("RateLimitError", 429, "rate_limit_error")
    assert refused["headers"]["anthropic-fast-output-tokens-remaining"] == "0" and int(refused["headers"]["retry-after"]) >= 1
    assert told["again"]["usage"]["speed"] == "standard"


def test_a_server_without_a_seat_is_overloaded(program: Program) -> None:
    with live({"tokens": [120]}, seats=0) as (_, client):
        error = program.steps(client, "full")["full"]
    assert (error["class"], error["status"], error["type"]) == ("OverloadedError", 529, "overloaded_error")


def test_a_stream_that_fails_throws(program: Program) -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        error = program.steps(client, "failing")["failing"]
    assert error["type"] == "api_error" and "the engine failed" in error["message"]
