"""Sampling.

Reports: vllm 51226 (unseeded neighbours changed seeded rows), vllm 4531 (seed -1); vllm 16529 (a bias outside the
vocabulary killed the engine); vmlx-swift 294, TensorRT-LLM 5623 (penalties that count the prompt).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cases.client import CHAT, COMPLETIONS, Client, content_of, tokens_of

pytestmark = pytest.mark.model


def seeded(server: Client, seed: int, **fields: Any) -> str:
    body = server.completion("The weather today is", temperature=0.8, seed=seed, max_tokens=24, **fields)
    return content_of(server.ok(COMPLETIONS, body))


def test_a_seed_gives_the_same_text_alone_in_company_and_fast(server: Client) -> None:
    alone = [seeded(server, 42) for _ in range(5)]
    neighbour = server.completion("Tell me", temperature=1.0, max_tokens=120, ignore_eos=True)
    with ThreadPoolExecutor(16) as pool:
        running = [pool.submit(server.ok, COMPLETIONS, neighbour) for _ in range(16)]
        in_company = [seeded(server, 42) for _ in range(5)]
        for each in running:
            each.result()
    fast = [seeded(server, 42, service_tier="fast") for _ in range(5)]
    assert len({*alone, *in_company, *fast}) == 1


def test_every_allowed_integer_is_a_seed(server: Client) -> None:
    texts = [[seeded(server, seed) for _ in range(2)] for seed in (0, -1, 1, 2**63 - 1)]
    assert all(first == second for first, second in texts)
    assert len({first for first, _ in texts}) > 1
    for seed in (2**63, -2, 1.5, "1", True):
        assert server.post(COMPLETIONS, server.completion(seed=seed)).error["param"] == "seed"


def test_without_a_seed_texts_differ(server: Client) -> None:
    body = server.completion("The weather today is", temperature=1.5, max_tokens=24)
    assert len({content_of(server.ok(COMPLETIONS, body)) for _ in range(3)}) > 1


def test_choices_of_one_request_are_seeded_one_by_one(server: Client) -> None:
    body = server.completion("The weather today is", temperature=0.8, seed=42, max_tokens=24, n=3)
    texts = [choice["text"] for choice in server.ok(COMPLETIONS, body)["choices"]]
    assert texts == [seeded(server, 42), seeded(server, 43), seeded(server, 44)]


@pytest.mark.parametrize(
    "bias",
    [
        {"99999": 5},
        {"-1": 5},
        {" You": 5},
        {"49152": 5},
        {"1": 500},
        {"1": -100.5},
        {"1": None},
        {"1": "5"},
        {"": 1},
        {"1.0": 1},
        [1],
    ],
)
def test_a_bad_bias_is_refused_and_named(server: Client, bias: object) -> None:
    for path, body in ((CHAT, server.chat(logit_bias=bias)), (COMPLETIONS, server.completion(logit_bias=bias))):
        assert server.post(path, body).error["param"] == "logit_bias"
    assert server.ok(CHAT, server.chat(max_tokens=1))


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_bias_of_100_forces_and_of_minus_100_forbids(server: Client, temperature: float) -> None:
    body = server.chat(max_tokens=6, logprobs=True, temperature=temperature, seed=1)
    forced = server.ok(CHAT, {**body, "logit_bias": {"19556": 100}})
    assert len(set(tokens_of(forced))) == 1 and len(tokens_of(forced)) == 6
    first = tokens_of(server.ok(CHAT, body))[0]
    ids = first_token_ids(server, first)
    forbidden = server.ok(CHAT, {**body, "logit_bias": {str(token): -100 for token in ids}})
    assert tokens_of(forbidden)[0] != first


def first_token_ids(server: Client, text: str) -> list[int]:
    """The ids that are this text, found by forcing: the vocabulary can't be asked for."""
    from headway.catalog.pull import pull
    from headway.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(pull("smollm2").path)
    return [token for token, raw in enumerate(tokenizer.token_bytes) if raw == text.encode()]


def test_penalties_look_at_the_output_only(server: Client) -> None:
    body = server.completion("hello hello hello hello", max_tokens=1, logprobs=5)

    def top(**fields: Any) -> dict[str, float]:
        answer: dict[str, float] = server.ok(COMPLETIONS, {**body, **fields})["choices"][0]["logprobs"]["top_logprobs"][0]
        return answer

    assert top(presence_penalty=2, frequency_penalty=2) == top(presence_penalty=0, frequency_penalty=0) == top()


def test_penalties_change_what_repeats(server: Client) -> None:
    body = server.completion("hello hello hello hello", max_tokens=20)
    plain = content_of(server.ok(COMPLETIONS, body))
    assert content_of(server.ok(COMPLETIONS, {**body, "frequency_penalty": 2, "presence_penalty": 2})) != plain
    assert content_of(server.ok(COMPLETIONS, {**body, "repetition_penalty": 1.5})) != plain
