"""LangChain's ChatOpenAI (chat and Responses) and ChatAnthropic."""

from __future__ import annotations

from typing import Any

import pytest
from cases.client import Client, Json
from server.live import live

from clients.programs import ONLY_WHEN_ASKED, Program, Told

pytestmark = ONLY_WHEN_ASKED
TIERS = {"none": "default", "default": "default", "priority": "priority", "fast": "fast", "alias": "priority"}
SPEEDS = {"none": "standard", "standard": "standard", "fast": "fast", "alias": "fast"}
REAL = ("openai", "responses", "anthropic", "completions", "tools", "structured", "errors")
KINDS = pytest.mark.parametrize("kind", ["openai", "responses", "anthropic"])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("with_langchain.py", tmp_path_factory.mktemp("home"), {})


@pytest.fixture(scope="module")
def told(program: Program, server: Client) -> Told:
    return program.steps(server, *REAL)


def text_of(message: Json) -> str:
    """LangChain's content is a string or a list of blocks."""
    content: Any = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def served(message: Json) -> str:
    metadata = message["response_metadata"]
    tier: str = metadata["usage"]["speed"] if metadata["model_provider"] == "anthropic" else metadata["service_tier"]
    return tier


@KINDS
def test_every_speed(told: Told, kind: str) -> None:
    text = text_of(told[kind]["none"]["invoked"])
    assert text
    for way, answers in told[kind].items():
        streamed = answers["streamed"]
        assert "".join(streamed["texts"]) == text_of(streamed["whole"]) == text
        for whole in (answers["invoked"], answers["awaited"]):
            assert text_of(whole) == text
            assert served(whole) == (SPEEDS if kind == "anthropic" else TIERS)[way]
            assert whole["usage_metadata"]["output_tokens"] == 8
            assert whole["usage_metadata"]["total_tokens"] == whole["usage_metadata"]["input_tokens"] + 8
        assert streamed["whole"]["usage_metadata"]["total_tokens"] == answers["invoked"]["usage_metadata"]["total_tokens"]
        if kind != "anthropic":  # its ChatAnthropic says nothing of the speed of a stream
            assert served(streamed["whole"]) == TIERS[way]
    assert told["completions"]


@KINDS
def test_tools(told: Told, kind: str) -> None:
    for turns in told["tools"][kind].values():
        for message in (turns["first"], turns["streamed"]):
            (call,) = message["tool_calls"]
            assert (call["name"], call["type"]) == ("weather", "tool_call")
            assert call["args"]["city"] in ("Oslo", "Rome") and call["id"]
            assert message["invalid_tool_calls"] == []
        assert turns["second"]["usage_metadata"]["output_tokens"] > 0


def test_schemas_are_parsed(told: Told) -> None:
    assert len(told["structured"]) == 3
    assert all(person["name"] in ("Ada", "Alan") and isinstance(person["grown"], bool) for person in told["structured"])


def test_errors_have_their_classes(told: Told) -> None:
    for dialect, errors in told["errors"].items():
        vendor = {"openai": "OpenAI", "anthropic": "Anthropic"}[dialect]
        assert errors["bad"]["classes"][0] == f"{vendor}InvalidRequestError" and "max_" in errors["bad"]["message"]
        assert errors["model"]["classes"][0] == f"{vendor}ModelNotFoundError"
        assert errors["long"]["status"] == 400
    assert "ContextOverflowError" in told["errors"]["anthropic"]["long"]["classes"]


def test_without_a_fast_seat(program: Program) -> None:
    with live({"tokens": [120]}, fast_seats=0) as (_, client):
        told = program.steps(client, "noFastSeat")["noFastSeat"]
    assert served(told["openai"]) == "default"
    assert "RateLimitError" in told["anthropic"]["classes"] and told["anthropic"]["status"] == 429


def test_a_server_without_a_seat(program: Program) -> None:
    with live({"tokens": [120]}, seats=0) as (_, client):
        full = program.steps(client, "full")["full"]
    assert "RateLimitError" in full["openai"]["classes"] and "OverloadedError" in full["anthropic"]["classes"]


def test_a_stream_that_fails_raises(program: Program) -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        error = program.steps(client, "failing")["failing"]
    assert "APIError" in error["classes"] and "the engine failed" in error["message"]
