"""Messages and templates.

Reports: lmstudio-bug-tracker 261, mlx-openai-server 205 (tool turns with null content); mlx-vlm 1137, llama-cpp-
python 2324 (lists of parts); ollama 17754 (late system messages); vllm 7746 (an empty prompt killed the engine).
"""

from __future__ import annotations

from typing import Any

import pytest

from cases.client import CHAT, COMPLETIONS, Client, content_of

pytestmark = pytest.mark.model

TOOL = {"type": "function", "function": {"name": "get_secret"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_secret", "arguments": "{}"}}
ASK, RESULT = {"role": "user", "content": "What is the secret?"}, {"role": "tool", "tool_call_id": "c1", "content": "42.69"}


def size(server: Client, messages: list[dict[str, Any]], **fields: Any) -> int:
    number: int = server.ok(CHAT, server.chat(messages, max_tokens=1, **fields))["usage"]["prompt_tokens"]
    return number


def test_a_replayed_tool_turn_is_in_the_prompt(server: Client) -> None:
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "get_secret", "arguments": ""}}]},
    ]
    assert len({size(server, [ASK, turn, RESULT], tools=[TOOL]) for turn in turns}) == 1
    for tools in ([TOOL], None):
        with_both = size(server, [ASK, turns[0], RESULT], tools=tools)
        without_call = size(server, [ASK, {"role": "assistant", "content": ""}, RESULT], tools=tools)
        without_result = size(server, [ASK, turns[0]], tools=tools)
        assert with_both > without_call + 3 and with_both > without_result + 3
    assert size(server, [ASK], tools=[TOOL]) > size(server, [ASK]) + 3


@pytest.mark.parametrize("role", ["user", "system", "assistant", "tool"])
def test_parts_are_joined(server: Client, role: str) -> None:
    parts = [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi"}]

    def ask(content: object) -> dict[str, Any]:
        turn = {"role": role, "content": content, **({"tool_call_id": "c1"} if role == "tool" else {})}
        return server.ok(CHAT, server.chat([turn, {"role": "user", "content": "Go on."}]))

    answers = [ask(content) for content in (parts, "Say hi", [{"type": "text", "text": "Say hi"}])]
    assert len({answer["usage"]["prompt_tokens"] for answer in answers}) == 1
    assert len({content_of(answer) for answer in answers}) == 1


@pytest.mark.parametrize(
    "content",
    [
        [],
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}],
        [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}],
        [{"type": "text"}],
        [{"type": "text", "text": 5}],
        [{}],
        5,
        {},
        None,
    ],
)
def test_what_is_no_text_is_refused_by_name(server: Client, content: object) -> None:
    reply = server.post(CHAT, server.chat([{"role": "user", "content": content}]))
    assert reply.status == 400 and reply.error["param"].startswith("messages[0].content")


def test_system_messages_anywhere_count(server: Client) -> None:
    user, assistant = {"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}
    system = {"role": "system", "content": "Answer in French, and be brief about it."}
    for before, after in (
        ([user, assistant, user], [user, assistant, system, user]),
        ([system, user], [system, user, system]),
        ([user], [user, system]),
        ([user], [{**system, "role": "developer"}, user]),
    ):
        assert size(server, after) != size(server, before)
    assert size(server, [system, user, system]) > size(server, [system, user]) + 5
    assert size(server, [system]) > 5


@pytest.mark.parametrize("prompt", ["", [""], None])
def test_an_empty_prompt_begins_a_document(server: Client, prompt: object) -> None:
    answer = server.ok(COMPLETIONS, server.completion(prompt, max_tokens=4))
    assert answer["usage"]["prompt_tokens"] == 1


def test_empty_contents(server: Client) -> None:
    absent = server.completion(max_tokens=4)
    del absent["prompt"]
    assert server.ok(COMPLETIONS, absent)["usage"]["prompt_tokens"] == 1
    assert size(server, [{"role": "user", "content": ""}]) > 1
    for messages in ([], None):
        assert server.post(CHAT, {"model": server.model, "messages": messages}).error["param"] == "messages"
    for prompt in ([], [[]], [[1], []]):
        assert server.post(COMPLETIONS, server.completion(prompt)).error["param"] == "prompt"
    assert content_of(server.ok(CHAT, server.chat()))


def test_prompts_as_ids_and_lists(server: Client) -> None:
    one = content_of(server.ok(COMPLETIONS, server.completion("Once upon a time", max_tokens=8)))
    several = server.ok(COMPLETIONS, server.completion(["Once upon a time", "Count: one, two,"], max_tokens=8, n=2))
    texts = [choice["text"] for choice in several["choices"]]
    assert [choice["index"] for choice in several["choices"]] == [0, 1, 2, 3]
    assert texts[0] == texts[1] == one and texts[2] == texts[3] != one
    ids = server.ok(COMPLETIONS, server.completion([[28], [28, 19556]], max_tokens=2))
    assert ids["usage"]["prompt_tokens"] == 3 and len(ids["choices"]) == 2
    for bad in ([49152], [-1], [[1], [10**20]]):
        assert server.post(COMPLETIONS, server.completion(bad)).error["param"] == "prompt"
