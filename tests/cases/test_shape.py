"""The shape of responses.

Reports: ollama 6784, Rapid-MLX 792 (usage chunk); vllm 4795 (logprobs without top_logprobs); llama.cpp 4790
(max_tokens not exact); vllm 42474, vllm 19861 (max_tokens larger than the room).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cases.client import CHAT, COMPLETIONS, Client, content_of, tokens_of

pytestmark = pytest.mark.model

PATHS = pytest.mark.parametrize("path", [CHAT, COMPLETIONS])


def body_for(server: Client, path: str, **fields: Any) -> dict[str, Any]:
    return server.chat("Say hi.", **fields) if path == CHAT else server.completion("Once", **fields)


@PATHS
def test_the_usage_chunk_comes_only_when_asked_and_says_what_the_whole_answer_says(server: Client, path: str) -> None:
    body = body_for(server, path, max_tokens=8)
    usage = server.ok(path, body)["usage"]
    for options in (None, {"include_usage": False}, {}):
        for chunk in server.stream(path, {**body, "stream_options": options}):
            assert chunk["choices"] and "usage" not in chunk
    *others, last = server.stream(path, {**body, "stream_options": {"include_usage": True}})
    assert last["choices"] == []
    assert all(chunk["choices"] and chunk["usage"] is None for chunk in others)
    for key in ("prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details"):
        assert last["usage"][key] == usage[key]
    error = server.post(path, {**body, "stream_options": {"include_usage": True}}).error
    assert error["param"] == "stream_options"


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_with_and_without_top(server: Client, stream: bool) -> None:
    body = server.chat(max_tokens=6, stream=stream)
    assert server.ok(CHAT, body)["choices"][0]["logprobs"] is None
    for top, number in ((None, 0), (0, 0), (1, 1), (20, 20)):
        answer = server.ok(CHAT, {**body, "logprobs": True, "top_logprobs": top})
        entries = answer["choices"][0]["logprobs"]["content"]
        assert {len(entry["top_logprobs"]) for entry in entries} == {number}
        assert all(entry["logprob"] <= 0 for entry in entries)
        if number:  # greedy takes the likeliest
            assert all(entry["top_logprobs"][0]["token"] == entry["token"] for entry in entries)
            ranked = [[top["logprob"] for top in entry["top_logprobs"]] for entry in entries]
            assert all(row == sorted(row, reverse=True) for row in ranked)
    for fields in ({"top_logprobs": 2}, {"logprobs": False, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 21}):
        assert server.post(CHAT, {**body, **fields}).error["param"] == "top_logprobs"


@PATHS
@pytest.mark.parametrize("limit", [1, 2, 3, 17])
def test_max_tokens_is_exact(server: Client, path: str, limit: int) -> None:
    body = body_for(server, path, max_tokens=limit, ignore_eos=True, logprobs=True if path == CHAT else 1)
    for stream in (False, True):
        options = {"include_usage": True} if stream else None
        answer = server.ok(path, {**body, "stream": stream, "stream_options": options})
        assert answer["usage"]["completion_tokens"] == len(tokens_of(answer)) == limit
        assert answer["choices"][0]["finish_reason"] == "length"


def test_defaults_and_both_names(server: Client) -> None:
    body = {"model": server.model, "prompt": "Once", "temperature": 0, "ignore_eos": True}
    assert server.ok(COMPLETIONS, body)["usage"]["completion_tokens"] == 16
    both = server.chat(max_tokens=5, max_completion_tokens=9, ignore_eos=True)
    assert server.ok(CHAT, both)["usage"]["completion_tokens"] == 9


@PATHS
@pytest.mark.parametrize("value", [-1, 0, "5", 2.5, True, [], {}])
def test_bad_limits_are_refused(server: Client, path: str, value: object) -> None:
    reply = server.post(path, body_for(server, path, max_tokens=value))
    assert (reply.status, reply.error["param"]) == (400, "max_tokens")


@pytest.mark.parametrize("limit", [8192, 65535, 2**31, 2**63, 10**30])
def test_more_than_the_room(server: Client, limit: int) -> None:
    assert content_of(server.ok(CHAT, server.chat("hi", max_tokens=limit, stop=["."])))
    reply = server.post(COMPLETIONS, server.completion("hi", max_tokens=limit))
    assert (reply.status, reply.error["param"]) == (400, "max_tokens")
    assert "max_tokens" in reply.error["message"] and reply.error["code"] != "context_length_exceeded"


def test_large_limits_reserve_nothing(server: Client) -> None:
    """32 requests that may have 8,000 tokens each run side by side."""
    body = server.chat("Say hi.", max_tokens=65535, stop=[".", "!"])
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: server.ok(CHAT, body), range(32)))
    assert len({content_of(answer) for answer in answers}) == 1


def test_a_prompt_that_leaves_no_room_is_blamed_itself(server: Client) -> None:
    for words in (9_000, 500_000):
        for path in (CHAT, COMPLETIONS):
            text = "word " * words
            reply = server.post(path, server.chat(text) if path == CHAT else server.completion(text))
            assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
            assert "8192" in reply.error["message"]
