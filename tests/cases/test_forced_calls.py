"""Calls that must come (cases B7, G1, G3), on the real model: valid in every dialect, at both speeds, streamed and not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cases.client import CHAT, Client

pytestmark = pytest.mark.model
SPEEDS = ["default", "fast"]
FIELDS = ("street", "city", "country", "zip", "phone", "name")
ADDRESS = {
    "type": "object",
    "properties": {field: {"type": "string", "maxLength": 12} for field in FIELDS},
    "required": list(FIELDS),
}


def chat_tool(name: str, parameters: Any = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name} | ({} if parameters is None else {"parameters": parameters})}


def call_of(answer: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    choice = answer["choices"][0]
    return choice["finish_reason"], choice["message"].get("tool_calls") or []


@pytest.mark.parametrize("tier", SPEEDS)
def test_a_required_call_is_valid_or_cut(server: Client, tier: str) -> None:
    for most in (8, 16, 24, 32, 48, 64, 400):
        body = server.chat("Send it to Ana.", max_tokens=most, tools=[chat_tool("send", ADDRESS)], tool_choice="required")
        answers = [
            server.ok(CHAT, {**body, "parallel_tool_calls": False, "service_tier": tier, "stream": streams})
            for streams in (False, True)
        ]
        (reason, calls), streamed = map(call_of, answers)
        assert (reason, [c["function"] for c in calls]) == (streamed[0], [c["function"] for c in streamed[1]])
        complete = [call for call in calls if parses(call["function"]["arguments"])]
        if most == 400:
            assert reason == "tool_calls"
            assert set(json.loads(calls[0]["function"]["arguments"])) == set(FIELDS)
        elif not calls or len(complete) < len(calls):
            assert reason == "length"


def parses(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


@pytest.mark.parametrize("tier", SPEEDS)
def test_the_named_tool_is_called_also_without_arguments(server: Client, tier: str) -> None:
    tools = [chat_tool("send", ADDRESS), chat_tool("now")]
    named = {"type": "function", "function": {"name": "now"}}
    body = server.chat("Hello!", max_tokens=60, tools=tools, tool_choice=named, service_tier=tier)
    reason, calls = call_of(server.ok(CHAT, body))
    assert reason == "tool_calls"
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == [("now", "{}")]


@pytest.mark.parametrize("tier", SPEEDS)
def test_messages_and_responses_force_calls_too(server: Client, tier: str) -> None:
    message = {
        "model": server.model,
        "max_tokens": 400,
        "messages": [{"role": "user", "content": "Send it to Ana."}],
        "tools": [{"name": "send", "input_schema": ADDRESS}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "speed": "fast" if tier == "fast" else "standard",
    }
    answer = server.ok("/v1/messages", message)
    assert answer["stop_reason"] == "tool_use"
    assert set(answer["content"][0]["input"]) == set(FIELDS)
    response = {
        "model": server.model,
        "input": "Send it to Ana.",
        "tools": [{"type": "function", "name": "send", "parameters": ADDRESS}],
        "tool_choice": {"type": "function", "name": "send"},
        "service_tier": tier,
    }
    called = server.ok("/v1/responses", response)
    assert called["status"] == "completed"
    assert [item["type"] for item in called["output"]] == ["function_call"]
    assert set(json.loads(called["output"][0]["arguments"])) == set(FIELDS)


@pytest.mark.parametrize("tier", SPEEDS)
def test_messages_and_responses_hold_text_to_a_schema(server: Client, tier: str) -> None:
    properties = {"answer": {"enum": ["yes", "no"]}}
    schema = {"type": "object", "properties": properties, "required": ["answer"], "additionalProperties": False}
    message = {
        "model": server.model,
        "max_tokens": 60,
        "messages": [{"role": "user", "content": "Is water wet?"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "speed": "fast" if tier == "fast" else "standard",
    }
    assert json.loads(server.ok("/v1/messages", message)["content"][0]["text"])["answer"] in ("yes", "no")
    form = {"type": "json_schema", "name": "verdict", "schema": schema, "strict": True}
    response = {"model": server.model, "input": "Is water wet?", "text": {"format": form}, "service_tier": tier}
    answer = server.ok("/v1/responses", response)
    assert json.loads(answer["output"][0]["content"][0]["text"])["answer"] in ("yes", "no")
    assert answer["text"]["format"] == form
