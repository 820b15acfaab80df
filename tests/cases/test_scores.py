"""Prompts that are scored: `echo` with `logprobs`, as evaluation harnesses ask for it.

Reports: vllm 5344 (a server that died of such a prompt in its prefix cache).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cases.client import COMPLETIONS, Client, Json, content_of

pytestmark = pytest.mark.model

BOTH_WAYS = pytest.mark.parametrize("stream", [False, True])
BOTH_SPEEDS = pytest.mark.parametrize("tier", ["default", "fast"])
TEXT = "The sea was calm that morning, and the fishermen of the village had gone out early. "


def scores(server: Client, prompt: Any, **fields: Any) -> Json:
    body = server.completion(prompt, **{"echo": True, "max_tokens": 0, "logprobs": 2, **fields})
    choice = server.ok(COMPLETIONS, body)["choices"][0]
    logprobs: Json = choice["logprobs"]
    assert len({len(values) for values in logprobs.values()}) == 1
    for at, token in zip(logprobs["text_offset"], logprobs["tokens"], strict=True):
        assert token.startswith("bytes:") or choice["text"].startswith(token, at)
    return logprobs


@BOTH_SPEEDS
@BOTH_WAYS
def test_tokens_have_the_likelihood_that_they_had_when_they_came(server: Client, tier: str, stream: bool) -> None:
    """To the last bit, though others ride along, speculation guesses several at a time, and prompts come in chunks."""
    neighbour = server.completion("Tell me a long story.", temperature=1.0, max_tokens=200, ignore_eos=True)
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(server.ok, COMPLETIONS, neighbour) for _ in range(6)]
        body = server.completion("Count: one, two, three,", max_tokens=90, logprobs=2, service_tier=tier, ignore_eos=True)
        answer = server.ok(COMPLETIONS, body)
        said = answer["choices"][0]["logprobs"]
        scored = scores(server, body["prompt"] + content_of(answer), service_tier=tier, stream=stream)
        for each in running:
            each.result()
    assert len(said["tokens"]) == 90
    for key in ("tokens", "token_logprobs", "top_logprobs"):
        assert scored[key][-90:] == said[key], key
    assert scored["text_offset"][-90:] == [at + len(body["prompt"]) for at in said["text_offset"]]


@BOTH_SPEEDS
def test_a_prompt_that_is_cached_is_scored_in_full(server: Client, tier: str) -> None:
    prompt = TEXT * 36
    first, second = (scores(server, prompt, service_tier=tier) for _ in range(2))
    assert first == second
    assert len(first["tokens"]) > 600 and "".join(first["tokens"]) == prompt
    assert first["token_logprobs"][0] is None and first["top_logprobs"][0] is None
    assert all(logprob <= 0.0 for logprob in first["token_logprobs"][1:])
    later = first["token_logprobs"][-100:]
    assert sum(later) / 100 > -0.5, "what was said many times before is likely"


def test_a_scored_prompt_goes_on_as_any_other(server: Client) -> None:
    plain = server.ok(COMPLETIONS, server.completion(TEXT, logprobs=1))["choices"][0]
    echoed = server.ok(COMPLETIONS, server.completion(TEXT, logprobs=1, echo=True))["choices"][0]
    assert echoed["text"] == TEXT + plain["text"]
    for key in ("tokens", "token_logprobs", "top_logprobs"):
        assert echoed["logprobs"][key][-len(plain["logprobs"][key]) :] == plain["logprobs"][key]


def test_texts_and_tokens_of_several_prompts(server: Client) -> None:
    texts = ["Two and two make four.", "Zwölf Boxkämpfer 🫠", "a"]
    answer = server.ok(COMPLETIONS, server.completion(texts, echo=True, max_tokens=0, logprobs=1))
    alone = [scores(server, text, logprobs=1) for text in texts]
    assert [choice["logprobs"] for choice in answer["choices"]] == alone
    assert answer["usage"]["completion_tokens"] == 0
    ids = [[260, 1000, 42], [42]]
    by_ids = server.ok(COMPLETIONS, server.completion(ids, echo=True, max_tokens=0, logprobs=1))
    assert [len(choice["logprobs"]["tokens"]) for choice in by_ids["choices"]] == [3, 1]
    assert by_ids["choices"][1]["logprobs"]["token_logprobs"] == [None]
    assert by_ids["usage"]["prompt_tokens"] == 4
