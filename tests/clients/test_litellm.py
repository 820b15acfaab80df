"""LiteLLM, which speaks both dialects and turns them into its own types, those of OpenAI's chat."""

from __future__ import annotations

import pytest
from cases.client import Client
from server.live import live

from clients.programs import ONLY_WHEN_ASKED, Program, Told

pytestmark = ONLY_WHEN_ASKED
TIERS = {"none": "default", "default": "default", "priority": "priority", "fast": "fast", "alias": "priority"}
SPEEDS = {"none": "standard", "standard": "standard", "fast": "fast", "alias": "fast"}
REAL = ("chat", "stream", "text", "responses", "responsesStream", "messages", "messagesStream", "native", "tools", "errors")
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("with_litellm.py", tmp_path_factory.mktemp("home"), OFFLINE)


@pytest.fixture(scope="module")
def told(program: Program, server: Client) -> Told:
    return program.steps(server, *REAL)


def test_chat_at_every_speed(told: Told) -> None:
    text = told["chat"]["none"]["choices"][0]["message"]["content"]
    assert text and told["text"]["none"]["choices"][0]["text"] == told["text"]["fast"]["choices"][0]["text"]
    assert told["text"]["fast"]["service_tier"] == "fast"
    for way, answer in told["chat"].items():
        assert (answer["service_tier"], answer["headway"]["mode"] == "fast") == (TIERS[way], TIERS[way] != "default")
        assert (answer["choices"][0]["message"]["content"], answer["usage"]["completion_tokens"]) == (text, 8)
        chunks, whole = told["stream"][way]["chunks"], told["stream"][way]["whole"]
        assert {chunk["service_tier"] for chunk in chunks} == {TIERS[way]} and whole["service_tier"] == TIERS[way]
        assert (whole["choices"][0]["message"]["content"], whole["choices"][0]["finish_reason"]) == (text, "length")
        assert whole["usage"]["total_tokens"] == answer["usage"]["total_tokens"]


def test_responses_at_every_speed(told: Told) -> None:
    for way, response in told["responses"].items():
        assert (response["service_tier"], response["status"]) == (TIERS[way], "incomplete")
        assert response["usage"]["output_tokens"] == 16  # it asks for no fewer
        *_, last = told["responsesStream"][way]
        assert (last["type"], last["response"]["service_tier"]) == ("response.incomplete", TIERS[way])
        assert last["response"]["output"][0]["content"] == response["output"][0]["content"]


def test_messages_at_every_speed(told: Told) -> None:
    text = told["messages"]["none"]["choices"][0]["message"]["content"]
    for way, answer in told["messages"].items():
        whole = told["messagesStream"][way]["whole"]
        for each in (answer, whole):
            assert (each["choices"][0]["message"]["content"], each["choices"][0]["finish_reason"]) == (text, "length")
            assert (each["usage"]["speed"], each["usage"]["completion_tokens"]) == (SPEEDS[way], 8)
            assert each["usage"]["total_tokens"] == answer["usage"]["total_tokens"]
        native = told["native"][way]
        assert (native["usage"]["speed"], native["stop_reason"]) == (SPEEDS[way], "max_tokens")


def test_tools(told: Told) -> None:
    for dialect, ways in told["tools"].items():
        for way, answer in ways.items():
            choice = answer["choices"][0]
            (call,) = choice["message"]["tool_calls"]
            assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "weather"), (dialect, way)
            assert call["function"]["arguments"] in ('{"city": "Oslo"}', '{"city": "Rome"}') and call["id"]
            assert not choice["message"]["content"]


def test_errors_have_their_classes(told: Told) -> None:
    assert {name: (error["classes"][0], error["status"]) for name, error in told["errors"].items()} == {
        "bad": ("BadRequestError", 400),
        "long": ("ContextWindowExceededError", 400),
        "model": ("NotFoundError", 404),
        "anthropic_model": ("NotFoundError", 404),
        "anthropic_long": ("ContextWindowExceededError", 400),
    }


def test_without_a_fast_seat(program: Program) -> None:
    with live({"tokens": [120]}, fast_seats=0) as (_, client):
        told = program.steps(client, "noFastSeat")["noFastSeat"]
    assert (told["openai"]["service_tier"], told["openai"]["headway"]["requested_mode"]) == ("default", "fast")
    assert (told["anthropic"]["classes"][0], told["anthropic"]["status"]) == ("RateLimitError", 429)


def test_a_server_without_a_seat(program: Program) -> None:
    with live({"tokens": [120]}, seats=0) as (_, client):
        full = program.steps(client, "full")["full"]
    assert (full["openai"]["classes"][0], full["openai"]["status"]) == ("RateLimitError", 429)
    assert "InternalServerError" in full["anthropic"]["classes"] or full["anthropic"]["status"] >= 500


def test_a_stream_that_fails_raises(program: Program) -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        error = program.steps(client, "failing")["failing"]
    assert "APIError" in error["classes"] and "the engine failed" in error["message"]
