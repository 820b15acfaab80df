"""OpenAI's Responses against the real server and model.

Reports: llama.cpp 4446 (characters of several tokens); vllm 53269 (a cut call); CLIProxyAPI 4904 (a stream without an end);
litellm 39559 (another key's response id); lmstudio-bug-tracker 261, mlx-vlm 1137 (tool turns, parts).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cases.client import CHAT, Client, content_of
from cases.process import serve
from cases.responses import RESPONSES, ask, body, calls_of, open_events, text_of

pytestmark = pytest.mark.model

TOOL = {"type": "function", "name": "get_secret", "description": "A secret.", "parameters": {"type": "object"}}
CALL = {"type": "function_call", "call_id": "call_1", "name": "get_secret", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "42.69"}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def size(server: Client, given: Any, **fields: Any) -> int:
    tokens: int = ask(server, body(server, given, max_output_tokens=1, **fields))["usage"]["input_tokens"]
    return tokens


def test_the_same_text_as_in_chat_streamed_or_not_at_both_speeds(server: Client) -> None:
    chat = server.ok(CHAT, server.chat("Name three colours.", max_tokens=24))
    for fields in ({}, {"stream": True}, {"service_tier": "fast"}, {"service_tier": "fast", "stream": True}):
        response = ask(server, body(server, "Name three colours.", **fields))
        assert text_of(response) == content_of(chat)
        assert response["usage"]["output_tokens"] == chat["usage"]["completion_tokens"]
        assert response["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"]
        assert response["service_tier"] == fields.get("service_tier", "default")


def test_cut_anywhere_both_ways_end_alike(server: Client) -> None:  # A1, B5, B7
    for length in range(1, 13):
        request = body(server, "Repeat: 🫠龜é𝔘ż", max_output_tokens=length, tools=[TOOL])
        whole, streamed = ask(server, request), ask(server, {**request, "stream": True})
        assert whole["status"] == streamed["status"] and text_of(whole) == text_of(streamed)
        assert "\ufffd" not in text_of(whole) and not calls_of(whole)
        if whole["status"] == "incomplete":
            assert whole["usage"]["output_tokens"] == length


def test_a_conversation_is_the_same_kept_here_or_sent_again(server: Client) -> None:
    first = ask(server, body(server, "Name a colour."))
    kept = ask(server, body(server, "Another.", previous_response_id=first["id"]))
    sent = ask(server, body(server, [user("Name a colour."), *first["output"], user("Another.")], service_tier="fast"))
    assert text_of(kept) == text_of(sent) and kept["usage"]["input_tokens"] == sent["usage"]["input_tokens"]
    assert sent["usage"]["input_tokens_details"]["cached_tokens"] > 0


def test_a_replayed_tool_turn_is_in_the_prompt(server: Client) -> None:  # C1
    question = user("What is the secret?")
    for tools in ({"tools": [TOOL]}, {}):
        both = size(server, [question, CALL, OUTPUT], **tools)
        assert both > size(server, [question, {"role": "assistant", "content": ""}, OUTPUT], **tools) + 3
        assert both > size(server, [question, CALL], **tools) + 3
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 100}
        assert size(server, [question, thought, CALL, OUTPUT], **tools) == both
        assert size(server, [question, {**CALL, "arguments": ""}, OUTPUT], **tools) == both
    assert size(server, [question], tools=[TOOL]) > size(server, [question]) + 3


def test_parts_are_joined(server: Client) -> None:  # C3
    parts = [{"type": "input_text", "text": "Say "}, {"type": "input_text", "text": "hi"}]
    answers = [ask(server, body(server, given)) for given in ([user(parts)], [user("Say hi")], "Say hi")]
    assert len({(text_of(answer), answer["usage"]["input_tokens"]) for answer in answers}) == 1
    assert size(server, "Go.", instructions="Say hi") == size(server, [{"role": "developer", "content": parts}, user("Go.")])


def test_another_keys_response(server: Client) -> None:  # H5
    mine = server.post(RESPONSES, body(server, "My codeword is X."), {"authorization": "Bearer a"}).json
    for headers in ({"authorization": "Bearer b"}, {}):
        reply = server.post(RESPONSES, body(server, "What is it?", previous_response_id=mine["id"]), headers)
        assert reply.status == 400 and reply.error["code"] == "previous_response_not_found"
        assert server.get(f"{RESPONSES}/{mine['id']}", headers).status == 404
    assert server.get(f"{RESPONSES}/{mine['id']}", {"authorization": "Bearer a"}).json == mine


@pytest.fixture(scope="module")
def short(smollm2: Path) -> Iterator[Client]:
    """A server with a context of 1,024 tokens: there is no memory for more."""
    process = serve(smollm2, "--kv-memory", "24MB")
    try:
        yield process.client()
    finally:
        process.close()


def test_a_conversation_that_is_too_long(short: Client) -> None:
    long = [user(f"{number}: " + "word " * 112) for number in range(12)]
    reply = short.post(RESPONSES, body(short, long))
    assert reply.status == 400 and reply.error["code"] == "context_length_exceeded"
    cut = ask(short, body(short, long, truncation="auto"))
    assert 750 < cut["usage"]["input_tokens"] < 1024


def test_a_client_that_leaves_gets_no_more(server: Client) -> None:
    with open_events(server, body(server, "Count.", max_output_tokens=4000, ignore_eos=True)) as events:
        response_id = next(events)["response"]["id"]
    assert server.get(f"{RESPONSES}/{response_id}").status == 404
