"""Text in a stream: characters of several tokens, and stop strings.

Reports: llama.cpp 4446, mlc-llm 1142 (U+FFFD in streams); llama.cpp 11538, vllm 3572 (stops across and inside
tokens); llama.cpp 10997 (text doubled after a near miss); fms-guardrails-orchestrator 515 (a last chunk without text
was lost).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from cases.client import CHAT, COMPLETIONS, Client, content_of, text_of, tokens_of

pytestmark = pytest.mark.model

BOTH_WAYS = pytest.mark.parametrize("stream", [False, True])
BOTH_SPEEDS = pytest.mark.parametrize("tier", ["default", "fast"])

RARE = "🫠龜🫠龜🫠龜🫠龜🫠龜🫠龜🫠龜🫠龜"
COUNT = "Count: one, two, three,"


@pytest.fixture(scope="module")
def oracle(server: Client) -> tuple[str, list[str]]:
    """The greedy continuation of COUNT, 40 tokens, and its tokens."""
    answer = server.ok(COMPLETIONS, server.completion(COUNT, max_tokens=40, logprobs=0))
    text, tokens = content_of(answer), tokens_of(answer)
    assert "".join(tokens) == text
    return text, tokens


@BOTH_SPEEDS
def test_rare_characters_repeated_by_the_model_come_whole(server: Client, tier: str) -> None:
    """The tokens of 🫠 and 龜 are three each, and none of them is a character."""
    body = server.completion(RARE, max_tokens=30, logprobs=0, service_tier=tier)
    whole = server.ok(COMPLETIONS, body)
    chunks = server.stream(COMPLETIONS, body)
    assert any(token.startswith("bytes:") for token in tokens_of(whole)), "the model doesn't go on with such characters"
    assert text_of(chunks) == content_of(whole)
    assert "\ufffd" not in json.dumps([whole, chunks], ensure_ascii=False)


@pytest.mark.parametrize("ids", [(10813, 121, 250), (180, 139, 246)])
def test_forced_pieces_of_a_character(server: Client, ids: tuple[int, int, int]) -> None:
    """Each piece alone, forced by its bias: never half a character, and the same text both ways."""
    for token in ids:
        for length in (1, 2, 3):
            body = server.chat("x", max_tokens=length, logit_bias={str(token): 100}, logprobs=True)
            whole, joined = server.ok(CHAT, body), server.ok(CHAT, {**body, "stream": True})
            assert content_of(whole) == content_of(joined)
            assert len(tokens_of(whole)) == len(tokens_of(joined)) == whole["usage"]["completion_tokens"] == length
            assert whole["choices"][0]["finish_reason"] == "length"


def test_cut_in_the_middle_of_a_character(server: Client) -> None:
    full = content_of(server.ok(COMPLETIONS, server.completion(RARE, max_tokens=12)))
    for length in range(1, 13):
        body = server.completion(RARE, max_tokens=length, stream_options=None)
        whole, joined = server.ok(COMPLETIONS, body), server.ok(COMPLETIONS, {**body, "stream": True})
        assert content_of(whole) == content_of(joined)
        assert full.startswith(content_of(whole))
        assert whole["usage"]["completion_tokens"] == length
        assert whole["choices"][0]["finish_reason"] == joined["choices"][0]["finish_reason"] == "length"


def stops_across(tokens: list[str]) -> list[str]:
    """Strings that end one token and begin the next."""
    return [tokens[i][-2:] + tokens[i + 1][:2] for i in range(3, len(tokens) - 1, 5)]


def stops_inside(tokens: list[str]) -> list[str]:
    return [token[1:-1] for token in tokens if len(token) >= 4 and token[1:-1].strip()][:5]


@BOTH_WAYS
@BOTH_SPEEDS
def test_stops_across_and_inside_tokens(server: Client, oracle: tuple[str, list[str]], stream: bool, tier: str) -> None:
    text, tokens = oracle
    stops = [*stops_across(tokens), *stops_inside(tokens)]
    assert len(stops) > 5
    for stop in stops:
        body = server.completion(COUNT, max_tokens=40, stop=[stop], service_tier=tier, stream=stream)
        answer = server.ok(COMPLETIONS, body)
        assert content_of(answer) == text[: text.index(stop)], stop
        assert answer["choices"][0]["finish_reason"] == "stop"


def test_no_chunk_shows_more_than_the_text_before_the_stop(server: Client, oracle: tuple[str, list[str]]) -> None:
    text, tokens = oracle
    for stop in stops_across(tokens):
        shown = ""
        for chunk in server.stream(COMPLETIONS, server.completion(COUNT, max_tokens=40, stop=stop)):
            shown += text_of([chunk])
            assert text[: text.index(stop)].startswith(shown)


@BOTH_WAYS
def test_of_several_stops_the_first_in_the_text_counts(server: Client, oracle: tuple[str, list[str]], stream: bool) -> None:
    text, tokens = oracle
    stops = [stops_across(tokens)[2], stops_across(tokens)[1], "never in it", stops_across(tokens)[3]]
    answer = server.ok(COMPLETIONS, server.completion(COUNT, max_tokens=40, stop=stops, stream=stream))
    assert content_of(answer) == text[: min(text.index(stop) for stop in stops if stop in text)]


@BOTH_WAYS
def test_near_misses_neither_double_nor_drop(server: Client, stream: bool) -> None:
    """A text that repeats itself, and stops that it begins again and again."""
    prompt = "ha ha ha ha ha ha ha ha ha ha"
    body = server.completion(prompt, max_tokens=40, stream=stream)
    text = content_of(server.ok(COMPLETIONS, body))
    misses = ["ha ha ha!", "a a", text[:20] + "\0", text[-5:] + "x", " ha ha hb"]
    hits = [text[3:9], text[10:25], text[-4:]]
    for stop in misses + hits:
        end = text.find(stop)
        answer = content_of(server.ok(COMPLETIONS, {**body, "stop": [stop]}))
        assert answer == (text if end < 0 else text[:end]), stop


@BOTH_SPEEDS
def test_the_first_token_is_the_stop(server: Client, tier: str) -> None:
    body: dict[str, Any] = server.chat("What is the capital of France?", service_tier=tier, logprobs=True)
    first = next(token for token in tokens_of(server.ok(CHAT, body)) if token.strip())
    body["stop"] = first.strip()
    whole = server.ok(CHAT, body)
    chunks = server.stream(CHAT, {**body, "logprobs": False})
    assert content_of(whole) == text_of(chunks) == ""
    assert whole["usage"]["completion_tokens"] >= 1
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, "stop"]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
