"""OpenAI's Node SDK. What it gave is held against the types of the Python SDK, which know every field."""

from __future__ import annotations

from typing import Any

import pytest
from cases.client import Client, wait_for
from cases.responses import OURS, checked, join_events, nothing_unknown
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from server.live import live

from clients.programs import ONLY_WHEN_ASKED, Program, Told

pytestmark = ONLY_WHEN_ASKED
SERVED = {"none": "default", "default": "default", "priority": "priority", "fast": "fast", "alias": "priority"}
"""How the server names the tier that it served, by the way in which speed was asked for."""
REAL = ("models", "chat", "chatStream", "completions", "responses", "responsesStream", "goingOn", "socket")
REAL += ("tools", "runTools", "parse", "closed", "errors")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("openai.mjs", tmp_path_factory.mktemp("home"), {})


@pytest.fixture(scope="module")
def told(program: Program, server: Client) -> Told:
    return program.steps(server, *REAL)


def known(type_: Any, answer: Any) -> Any:
    """An answer has all the fields of its type, and no others than ours."""
    assert {name in answer for name in OURS} == {True}
    typed = type_.model_validate({name: value for name, value in answer.items() if name not in (*OURS, "service_tier")})
    nothing_unknown(typed)
    return typed


def test_models(told: Told, server: Client) -> None:
    cards = told["models"]
    assert [card["id"] for card in cards["listed"]] == [server.model, f"{server.model}-fast"]
    assert cards["one"] == cards["listed"][1]


def test_chat_at_every_speed(told: Told, server: Client) -> None:
    for way, answer in told["chat"].items():
        chat = known(ChatCompletion, answer)
        assert (answer["service_tier"], chat.model) == (SERVED[way], server.model + ("-fast" if way == "alias" else ""))
        assert answer["headway"]["mode"] == ("standard" if SERVED[way] == "default" else "fast")
        assert chat.choices[0].finish_reason == "length" and chat.usage.completion_tokens == 8
        assert chat.choices[0].message.content == told["chat"]["none"]["choices"][0]["message"]["content"] != ""


def test_the_stream_adds_up_to_the_same(told: Told) -> None:
    for way, streamed in told["chatStream"].items():
        final, chunks = streamed["final"], streamed["chunks"]
        whole = told["chat"][way]["choices"][0]["message"]["content"]
        assert streamed["text"] == final["choices"][0]["message"]["content"] == whole
        assert final["usage"]["completion_tokens"] == 8 and {chunk["service_tier"] for chunk in chunks} == {SERVED[way]}
        for chunk in chunks:
            nothing_unknown(ChatCompletionChunk.model_validate({name: chunk[name] for name in chunk if name not in OURS}))
        role, *_, finish, usage = chunks
        assert role["choices"][0]["delta"]["role"] == "assistant" and finish["choices"][0]["finish_reason"] == "length"
        assert usage["choices"] == [] and usage["usage"] == final["usage"]


def test_completions(told: Told) -> None:
    standard, fast = (told["completions"][speed] for speed in ("standard", "fast"))
    assert (standard["service_tier"], fast["service_tier"]) == ("default", "priority")
    assert known(Completion, standard).choices[0].text == known(Completion, fast).choices[0].text


def test_responses_at_every_speed(told: Told) -> None:
    for way, response in told["responses"].items():
        text = response.pop("output_text")  # the SDK's own
        assert checked(response)["service_tier"] == SERVED[way]
        assert response["status"] == "incomplete" and response["usage"]["output_tokens"] == 8
        joined = join_events(told["responsesStream"][way])
        assert joined["service_tier"] == SERVED[way]
        assert joined["output"][0]["content"][0]["text"] == text != ""


def test_a_conversation_goes_on(told: Told) -> None:
    first, second, gone = (told["goingOn"][name] for name in ("first", "second", "gone"))
    assert second["previous_response_id"] == first["id"]
    assert second["usage"]["input_tokens"] > first["usage"]["total_tokens"]
    assert (gone["class"], gone["status"]) == ("NotFoundError", 404)


def test_the_web_socket(told: Told) -> None:
    response = join_events(told["socket"])
    assert response["service_tier"] == "priority" and response["usage"]["output_tokens"] == 8


def test_tools(told: Told) -> None:
    for speed, answers in told["tools"].items():
        for choice in (answers["whole"]["choices"][0], answers["streamed"]["choices"][0]):
            (call,) = choice["message"]["tool_calls"]
            assert (choice["finish_reason"], call["type"], call["function"]["name"]) == ("tool_calls", "function", "weather")
            assert call["function"]["arguments"] in ('{"city": "Oslo"}', '{"city": "Rome"}') and call["id"]
        (item,) = answers["response"]["output"]
        assert (item["type"], item["name"], item["status"]) == ("function_call", "weather", "completed")
        assert answers["whole"]["headway"]["mode"] == answers["response"]["headway"]["mode"] == speed
    assert told["runTools"]["called"][0]["city"] in ("Oslo", "Rome")
    assert [message["role"] for message in told["runTools"]["messages"]] == ["user", "assistant", "tool"]


def test_a_schema_is_parsed(told: Told) -> None:
    assert told["parse"]["name"] in ("Ada", "Alan") and isinstance(told["parse"]["grown"], bool)


def test_a_stream_that_is_left_frees_its_row(told: Told, server: Client) -> None:
    assert told["closed"]
    wait_for(lambda: server.metric("headway_rows", mode="standard") == 0)


def test_errors_have_their_classes(told: Told) -> None:
    errors = told["errors"]
    assert {name: (error["class"], error["status"], error["code"]) for name, error in errors.items()} == {
        "bad": ("BadRequestError", 400, None),
        "long": ("BadRequestError", 400, "context_length_exceeded"),
        "model": ("NotFoundError", 404, "model_not_found"),
        "path": ("NotFoundError", 404, "model_not_found"),
    }
    assert all(error["requestId"].startswith("req_") for error in errors.values())


def test_a_server_without_a_seat(program: Program) -> None:
    with live({"tokens": [120]}, seats=0) as (_, client):
        for error in program.steps(client, "full")["full"].values():
            assert (error["class"], error["status"], error["code"]) == ("RateLimitError", 429, "rate_limit_exceeded")
            assert int(error["headers"]["retry-after"]) >= 1


def test_without_a_fast_seat_it_is_told_that_it_was_served_at_standard(program: Program) -> None:
    with live({"tokens": [120]}, fast_seats=0) as (_, client):
        answer = program.steps(client, "downgraded")["downgraded"]
        assert (answer["service_tier"], answer["headway"]["requested_mode"]) == ("default", "fast")


def test_a_stream_that_fails_throws(program: Program) -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        error = program.steps(client, "failing")["failing"]
        assert error["class"] == "APIError" and "the engine failed" in error["message"]
