"""Drafts: they make tokens come sooner and change nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cases.client import CHAT, COMPLETIONS, Client, Json, content_of, tokens_of
from cases.process import serve
from headway.catalog.pull import pull
from headway.compare.prompts import PROMPTS

pytestmark = pytest.mark.model

TOKENS = 80
SPEEDS = ("default", "fast")


@pytest.fixture(scope="module")
def plain(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server that makes no drafts."""
    config = tmp_path_factory.mktemp("plain") / "headway.toml"
    config.write_text("[scheduler]\nspeculation = false\n")
    process = serve(smollm2, "--config", str(config))
    try:
        yield process.client()
    finally:
        process.close()


def all_at_once(client: Client, bodies: list[Json]) -> list[Json]:
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(lambda body: client.ok(CHAT, body), bodies))


def test_greedy_text_is_the_same_with_drafts_without_and_with_any_prediction(server: Client, plain: Client) -> None:
    prompts = PROMPTS[:30]
    bodies = [server.chat(prompt, max_tokens=TOKENS, logprobs=True) for prompt in prompts]
    expected = [{**answer} for answer in all_at_once(plain, [{**body, "model": plain.model} for body in bodies])]
    assert all(answer["headway"]["drafted_tokens"] == 0 for answer in expected)
    tokens = [tokens_of(answer) for answer in expected]
    texts = [content_of(answer) for answer in expected]
    none: list[Json] = [{}] * len(texts)
    right = [{"prediction": {"type": "content", "content": text}} for text in texts]
    wrong = [{"prediction": {"type": "content", "content": [{"type": "text", "text": text}]}} for text in reversed(texts)]
    ways = [[{**extra, "service_tier": tier} for extra in extras] for tier in SPEEDS for extras in (none, right, wrong)]
    drafted = 0
    for turn in range(0, len(ways), 2):  # each prompt in three of the six ways, and every step full of all of them
        asked = [{**body, **ways[(turn + i) % len(ways)][i]} for i, body in enumerate(bodies)]
        for answer, wanted in zip(all_at_once(server, asked), tokens, strict=True):
            assert tokens_of(answer) == wanted
            drafted += answer["headway"]["drafted_tokens"]
            _check_counts(answer, len(wanted))
    assert drafted > 0


def test_a_smaller_model_that_reads_along_changes_no_text(plain: Client, smollm2: Path) -> None:
    pull("smollm2-spark")
    prompts = [f"{prompt} Answer in your own words." for prompt in PROMPTS[:4]]
    bodies = [plain.chat(prompt, max_tokens=TOKENS, logprobs=True, service_tier="fast") for prompt in prompts]
    wanted = [tokens_of(answer) for answer in all_at_once(plain, bodies)]
    process = serve(smollm2, "--draft-model", "smollm2-spark")
    try:
        client = process.client()
        answers = all_at_once(client, bodies)
        drafted = client.metric("headway_drafted_tokens_total", mode="fast", source="draft_model")
        accepted = client.metric("headway_accepted_tokens_total", mode="fast", source="draft_model")
    finally:
        process.close()
    assert [tokens_of(answer) for answer in answers] == wanted
    assert 0 < accepted < drafted
    assert any("smollm2-spark guesses 3 tokens ahead" in line for line in process.lines)


def test_constrained_text_is_the_same_with_drafts_and_without(server: Client, plain: Client) -> None:
    properties = {"title": {"type": "string", "maxLength": 30}, "pages": {"type": "integer"}, "new": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    response_format = {"type": "json_schema", "json_schema": {"name": "book", "schema": schema}}
    ways = [{"temperature": 0}, {"temperature": 1.2, "seed": 5}]
    bodies = [
        server.chat(prompt, max_tokens=TOKENS, logprobs=True, response_format=response_format, **way)
        for prompt in PROMPTS[:8]
        for way in ways
    ]
    wanted = [tokens_of(answer) for answer in all_at_once(plain, [{**body, "model": plain.model} for body in bodies])]
    for tier in SPEEDS:
        answers = all_at_once(server, [{**body, "service_tier": tier} for body in bodies])
        assert [tokens_of(answer) for answer in answers] == wanted
        # How many depends on the room that steps have, and so on the load; that there were some makes the comparison one.
        assert sum(answer["headway"]["accepted_tokens"] for answer in answers) > 0


def _check_counts(answer: Json, num_tokens: int) -> None:
    details = answer["usage"]["completion_tokens_details"]
    accepted, rejected = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
    assert 0 <= accepted <= num_tokens
    assert answer["usage"]["completion_tokens"] == num_tokens + rejected
    served = answer["headway"]
    assert 0 <= served["accepted_tokens"] <= served["drafted_tokens"]
    assert accepted <= served["accepted_tokens"] and rejected <= served["drafted_tokens"] - served["accepted_tokens"]


def test_a_right_prediction_is_accepted_and_takes_fewer_steps(server: Client) -> None:
    body = server.chat("Tell a short story about a lighthouse keeper.", max_tokens=TOKENS, service_tier="fast")
    text = content_of(server.ok(CHAT, body))
    steps = server.metric("headway_step_seconds_count")
    answer = server.ok(CHAT, {**body, "prediction": {"type": "content", "content": text}})
    assert content_of(answer) == text
    accepted = answer["usage"]["completion_tokens_details"]["accepted_prediction_tokens"]
    assert accepted > TOKENS / 2
    assert server.metric("headway_step_seconds_count") - steps < TOKENS / 2


@pytest.mark.parametrize(
    "prediction", ["text", {"type": "content"}, {"type": "code", "content": "x"}, {"type": "content", "content": 5}]
)
def test_a_prediction_of_another_form_is_refused(server: Client, prediction: object) -> None:
    reply = server.post(CHAT, server.chat(prediction=prediction))
    assert reply.status == 400
    assert reply.error["param"].startswith("prediction")


def test_an_empty_prediction_and_one_beyond_the_context_do_no_harm(server: Client) -> None:
    body = server.chat("Name three colours.", max_tokens=12)
    expected = content_of(server.ok(CHAT, body))
    for text in ("", "red green blue " * 20_000):
        assert content_of(server.ok(CHAT, {**body, "prediction": {"type": "content", "content": text}})) == expected


def _completion(answer: Json) -> tuple[str, list[str], int, str]:
    return (
        content_of(answer),
        tokens_of(answer),
        answer["usage"]["completion_tokens"],
        answer["choices"][0]["finish_reason"],
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": [" ha ha ha"]},
        {"stop": ["a h"], "max_tokens": 7},
        {"max_tokens": 7},
        {"max_tokens": 1},
        {"stop": ["\n", "?"], "max_tokens": 60},
    ],
)
def test_an_end_inside_an_accepted_batch_leaves_nothing_behind_it(server: Client, plain: Client, fields: Json) -> None:
    for prompt in (" ha ha ha ha ha ha ha ha", "one two three one two three one two three one"):
        asked = {"prompt": prompt, "logprobs": 2, **fields}
        expected = _completion(plain.ok(COMPLETIONS, plain.completion(**asked)))
        for tier in SPEEDS:
            for stream in (False, True):
                extra = {"stream_options": {"include_usage": True}} if stream else {}
                body = server.completion(service_tier=tier, stream=stream, **asked, **extra)
                assert _completion(server.ok(COMPLETIONS, body)) == expected


def test_sampled_text_with_a_seed_is_the_same_too(server: Client, plain: Client) -> None:
    for seed in range(4):
        fields = {"temperature": 0.8, "seed": seed, "max_tokens": 60}
        expected = content_of(plain.ok(CHAT, plain.chat("Repeat the word ha twenty times.", **fields)))
        for tier in SPEEDS:
            body = server.chat("Repeat the word ha twenty times.", service_tier=tier, **fields)
            assert content_of(server.ok(CHAT, body)) == expected
