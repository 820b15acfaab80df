"""Anthropic's Messages against the real server and model.

Reports: claude-code 32636, llama.cpp 19494 (the first system block that changes); sglang 20678, anthropic-sdk-python 1806
(message_start without usage), LibreChat agents 308 (output tokens are cumulative); llama.cpp 4446 (characters of several
tokens); lmstudio-bug-tracker 261, mlx-vlm 1137, ollama 17754 (tool turns, parts, late system turns); vllm 53269 (a cut call).
"""

from __future__ import annotations

from typing import Any

import pytest

from cases.client import CHAT, Client, content_of
from cases.messages import COUNT, HEADERS, MESSAGES, ask, body, open_events, prompt_tokens, text_of

pytestmark = pytest.mark.model

TOOL = {"name": "get_secret", "description": "A secret.", "input_schema": {"type": "object", "properties": {}}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_secret", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42.69"}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def size(server: Client, turns: Any, **fields: Any) -> int:
    return prompt_tokens(ask(server, body(server, turns, max_tokens=1, **fields)))


def test_the_same_text_as_in_chat_streamed_or_not_at_both_speeds(server: Client) -> None:
    chat = server.ok(CHAT, server.chat("Name three colours."))
    for fields in ({}, {"stream": True}, {"speed": "fast"}, {"speed": "fast", "stream": True}):
        message = ask(server, body(server, "Name three colours.", **fields))
        assert text_of(message) == content_of(chat)
        assert message["usage"]["output_tokens"] == chat["usage"]["completion_tokens"]
        assert prompt_tokens(message) == chat["usage"]["prompt_tokens"]
        assert message["usage"]["speed"] == message["headway"]["mode"] == fields.get("speed", "standard")


def test_message_start_has_the_real_input_tokens(server: Client) -> None:  # H1
    for fields in ({}, {"tools": [TOOL]}):
        request = body(server, "What is the secret? Tell me all of it.", **fields)
        with open_events(server, request) as events:
            streamed = list(events)
        start, end = streamed[0]["message"]["usage"], streamed[-2]["usage"]
        whole = ask(server, request)
        reply = server.post(COUNT, request, HEADERS)
        counts = {prompt_tokens({"usage": usage}) for usage in (start, end, whole["usage"])}
        assert counts == {reply.json["input_tokens"]} and start["input_tokens"] > 0
        assert end["output_tokens"] == whole["usage"]["output_tokens"] > 0
        assert {key: value for key, value in end.items() if key != "output_tokens"} == {
            key: value for key, value in start.items() if key != "output_tokens"
        }


def test_a_billing_header_that_changes_does_not_spoil_the_cache(server: Client) -> None:  # E7
    long = "".join(f"Rule {number}: never say the word number {number}. " for number in range(60))

    def system(cch: str, text: str) -> list[dict[str, Any]]:
        header = f"x-anthropic-billing-header: cc_version=2.1.42; cch={cch};"
        return [{"type": "text", "text": header}, {"type": "text", "text": text}]

    first = ask(server, body(server, "Hi.", system=system("AAAAA", long)))
    second = ask(server, body(server, "Hi.", system=system("BBBBB", long), speed="fast"))
    assert prompt_tokens(first) == prompt_tokens(second) > 600
    assert second["usage"]["cache_read_input_tokens"] >= 0.9 * prompt_tokens(second)
    changed = ask(server, body(server, "Hi.", system=system("AAAAA", f"Another beginning. {long}")))
    assert changed["usage"]["cache_read_input_tokens"] < 0.1 * prompt_tokens(changed)


def test_a_replayed_tool_turn_is_in_the_prompt(server: Client) -> None:  # C1
    question = user("What is the secret?")
    for tools in ({"tools": [TOOL]}, {}):
        turn = {"role": "assistant", "content": [USE]}
        both = size(server, [question, turn, user([RESULT])], **tools)
        assert both > size(server, [question, {"role": "assistant", "content": ""}, user([RESULT])], **tools) + 3
        assert both > size(server, [question, turn], **tools) + 3
        thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x " * 50, "signature": "s"}, USE]}
        assert size(server, [question, thought, user([RESULT])], **tools) == both
    assert size(server, [question], tools=[TOOL]) > size(server, [question]) + 3


def test_parts_are_joined(server: Client) -> None:  # C3
    parts = [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi"}]
    answers = [ask(server, body(server, content)) for content in (parts, "Say hi")]
    assert prompt_tokens(answers[0]) == prompt_tokens(answers[1]) and text_of(answers[0]) == text_of(answers[1])
    systems = [size(server, "Go.", system=system) for system in (parts, "Say hi", [{"type": "text", "text": "Say hi"}])]
    assert len(set(systems)) == 1 and systems[0] != size(server, "Go.")
    results = [size(server, [user([{**RESULT, "content": content}])]) for content in (parts, "Say hi")]
    assert results[0] == results[1]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    for content in ([], [image], [*parts, image]):
        reply = server.post(MESSAGES, body(server, [user(content)]), HEADERS)
        assert reply.status == 400 and "messages[0].content" in reply.json["error"]["message"]


def test_system_turns_anywhere_count(server: Client) -> None:  # C5
    turns = [user("Hello."), {"role": "assistant", "content": "Hi."}, user("How are you?")]
    late = {"role": "system", "content": "Answer in French, and be brief about it."}
    plain = size(server, turns)
    assert size(server, [late, *turns]) == size(server, turns, system=late["content"]) != plain
    for place in range(1, len(turns) + 1):
        assert size(server, [*turns[:place], late, *turns[place:]]) > plain + 5
    assert size(server, [*turns, late], system="Be kind.") > size(server, turns, system="Be kind.") + 5


def test_max_tokens_is_an_upper_bound(server: Client) -> None:  # B5, B9
    for limit in (1, 2, 3):
        message = ask(server, body(server, "Count to twenty.", max_tokens=limit))
        assert (message["usage"]["output_tokens"], message["stop_reason"]) == (limit, "max_tokens")
    assert ask(server, body(server, "Say hi.", max_tokens=65_535))["stop_reason"] in (
        "end_turn",
        "model_context_window_exceeded",
    )


def test_a_stop_sequence_is_found_and_named(server: Client) -> None:  # A3
    text = text_of(ask(server, body(server, "Name three colours.")))
    stop = text[5:9]
    for stream in (False, True):
        message = ask(server, body(server, "Name three colours.", stop_sequences=[stop, "never seen"], stream=stream))
        assert text_of(message) == text[: text.index(stop)]
        assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", stop)


def test_the_beginning_of_an_answer_is_continued(server: Client) -> None:
    question = user("Name three colours.")
    whole = text_of(ask(server, body(server, [question])))
    begun = whole[: whole.index(" ", 8)]
    rest = ask(server, body(server, [question, {"role": "assistant", "content": begun}]))
    assert text_of(rest)[:10] == whole[len(begun) :][:10]


def test_cut_anywhere_both_ways_end_alike(server: Client) -> None:  # A1, B7
    for length in range(1, 13):
        request = body(server, "Repeat: 🫠龜é𝔘ż", max_tokens=length, tools=[TOOL])
        whole, streamed = ask(server, request), ask(server, {**request, "stream": True})
        assert whole["stop_reason"] == streamed["stop_reason"] and text_of(whole) == text_of(streamed)
        assert "\ufffd" not in text_of(whole)
