"""Two models in one server: the main one and its spark, over every dialect."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from cases.client import CHAT, COMPLETIONS
from cases.responses import RESPONSES
from ledger.books import groups, rows, sqlite
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from headway.access.keys import hash_of, new_key
from headway.config import Settings
from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import GenerateRequest
from headway.server.openai.shapes import ModelCard, ModelList

from .scripted import HI, Script, World

MESSAGES = "/v1/messages"
ANTHROPIC = {"anthropic-version": "2023-06-01"}
SPARK = ModeName.SPARK
KEY = new_key()
Json = dict[str, Any]


def world(tree: Json | None = None, *scripts: Script, **options: Any) -> tuple[World, TestClient]:
    config = Settings.model_validate({"ledger": {"enabled": False}, **(tree or {})})
    made = World(*scripts, config=config, spark=True, context=options.pop("context", 200), **options)
    return made, TestClient(made.app)


def body(path: str, **fields: Any) -> Json:
    """A short request to the spark."""
    asked: Json = {"model": "s", "prompt": "hi"}
    if path == RESPONSES:
        asked = {"model": "s", "input": "hi", "max_output_tokens": 4}
    elif path != COMPLETIONS:
        asked = {"model": "s", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
    return {**asked, **fields}


def full(request: GenerateRequest) -> RequestError:
    return RequestError(429, "all seats are taken; try again in 3 s", code="rate_limit_exceeded", retry_after=2.25)


# --- which model answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "prompt"),
    [
        (CHAT, [*b"<user>", HI, *b"!"]),
        (RESPONSES, [*b"<user>", HI, *b"!"]),
        (MESSAGES, [*b"<user>", HI, *b"!"]),
        (COMPLETIONS, [HI]),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_each_dialect_s_request_goes_to_the_model_it_names(path: str, prompt: list[int], stream: bool) -> None:
    made, client = world()
    answer = client.post(path, json=body(path, stream=stream))
    assert answer.status_code == 200, answer.text
    (request,) = made.sparkling.requests
    assert (request.mode, request.pace, request.prompt) == (SPARK, None, prompt)
    assert made.generator.requests == [] and made.metrics.load("s")["running_spark"] == 0
    if not stream:
        told = answer.json()
        assert told["model"] == "s"
        modes = told["headway"]
        assert (modes["mode"], modes["requested_mode"], modes["billed_mode"]) == ("spark", "spark", "spark")
    assert client.post(path, json=body(path, model="m-fast")).status_code == 200
    assert [request.mode for request in made.generator.requests] == ["fast"] and len(made.sparkling.requests) == 1


@pytest.mark.parametrize(
    "path", [CHAT, COMPLETIONS, RESPONSES, MESSAGES, f"{MESSAGES}/count_tokens", f"{RESPONSES}/input_tokens"]
)
def test_an_unknown_model_is_told_all_there_are(path: str) -> None:
    made, client = world()
    refused = client.post(path, json=body(path.removesuffix("/input_tokens"), model="s-fast"))
    assert refused.status_code == 404 and "Available: m, m-fast, s." in refused.json()["error"]["message"]
    assert made.generator.requests == made.sparkling.requests == []


def test_tokens_are_counted_by_the_model_s_own_tokenizer_and_template() -> None:
    _, client = world()
    counts = {}
    for model in ("m", "s"):
        messages = client.post(f"{MESSAGES}/count_tokens", json=body(MESSAGES, model=model)).json()["input_tokens"]
        responses = client.post(f"{RESPONSES}/input_tokens", json=body(RESPONSES, model=model)).json()["input_tokens"]
        assert messages == responses
        counts[model] = messages
    assert counts == {"m": len("<user>hi"), "s": len("<user>") + 1 + len("!")}


def test_a_spark_s_own_context_is_the_limit() -> None:
    _, client = world(context=64)
    long = body(CHAT, messages=[{"role": "user", "content": "x" * 40}])
    assert client.post(CHAT, json={**long, "model": "m"}).status_code == 200
    refused = client.post(CHAT, json=long)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert "32 tokens" in refused.json()["error"]["message"]
    refused = client.post(MESSAGES, json=long)
    assert refused.status_code == 400 and refused.json()["error"]["message"].endswith("tokens > 31 maximum")


def test_token_ids_and_biases_are_of_the_model_s_own_vocabulary() -> None:
    made, client = world()
    for fields in ({"prompt": [HI]}, {"logit_bias": {str(HI): 1}}):
        assert client.post(COMPLETIONS, json=body(COMPLETIONS, **fields)).status_code == 200
        assert client.post(COMPLETIONS, json=body(COMPLETIONS, model="m", **fields)).status_code == 400
    assert len(made.sparkling.requests) == 2


def test_a_conversation_that_changes_its_model_takes_no_tokens_of_the_other_s_along() -> None:
    made, client = world(None, Script(tokens=tuple(b"one")))
    with client.websocket_connect(RESPONSES) as socket:
        previous = None
        for model in ("m", "m", "s", "m"):
            socket.send_json({"type": "response.create", "model": model, "input": "hi", "previous_response_id": previous})
            while (event := socket.receive_json())["type"] != "response.completed":
                assert event["type"] != "error", event
            previous = event["response"]["id"]
    (asked,) = made.sparkling.requests
    begin = "<user>hi<assistant>one" * 2
    assert asked.prompt == made.spark.tokenizer.encode(f"{begin}<user>hi!")
    assert made.generator.requests[-1].prompt == list(f"{begin}<user>hi<assistant>one<user>hi".encode())


# --- words for speed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("tier", ["auto", "flex", "priority", "fast"])
def test_openai_s_words_are_taken_and_the_answer_says_default(path: str, tier: str) -> None:
    made, client = world()
    answer = client.post(path, json=body(path, service_tier=tier))
    assert (answer.status_code, answer.json()["service_tier"]) == (200, "default")
    assert made.sparkling.requests[0].mode is SPARK


def test_anthropic_s_word_for_fast_is_refused_as_its_own_api_does_it() -> None:
    made, client = world()
    answer = client.post(MESSAGES, json=body(MESSAGES, speed="standard"))
    assert (answer.status_code, answer.json()["usage"]["speed"]) == (200, "standard")
    refused = client.post(MESSAGES, json=body(MESSAGES, speed="fast"))
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    assert refused.json()["error"]["message"] == "'s' does not support the `speed` parameter."
    assert len(made.sparkling.requests) == 1


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_figures_are_promised_within_the_spark_s_own_pace(path: str) -> None:
    made, client = world()
    assert client.post(path, json=body(path), headers={"x-slo-tpot-ms": "5", "x-slo-ttft-ms": "100"}).status_code == 200
    assert (made.sparkling.requests[0].pace, made.sparkling.requests[0].ttft) == (200.0, 0.1)
    refused = client.post(path, json=body(path), headers={"x-slo-tpot-ms": "4"})
    assert refused.status_code == 400 and "s is 200 tokens/s (5 ms per token)" in refused.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES, MESSAGES])
def test_without_a_seat_a_spark_is_refused_and_nothing_else_is_served(path: str, stream: bool) -> None:
    made, client = world()
    made.sparkling.refuse = full
    refused = client.post(path, json=body(path, stream=stream))
    assert refused.status_code == 429
    assert (refused.headers["retry-after"], refused.headers["retry-after-ms"]) == ("3", "2250")
    assert made.generator.requests == []
    pool = "anthropic-ratelimit-requests-remaining" if path == MESSAGES else "x-ratelimit-remaining-requests"
    assert refused.headers[pool] == "0" and not any("anthropic-fast" in name for name in refused.headers)
    assert 'headway_requests_total{mode="spark",outcome="refused"} 1.0' in client.get("/metrics").text


def test_without_a_seat_a_websocket_says_so_too() -> None:
    made, client = world()
    made.sparkling.refuse = full
    with client.websocket_connect(RESPONSES) as socket:
        socket.send_json({"type": "response.create", **body(RESPONSES)})
        event = socket.receive_json()
    assert (event["type"], event["status"]) == ("error", 429)
    assert event["error"]["headers"]["retry-after-ms"] == "2250"
    assert event["error"]["headers"]["x-ratelimit-limit-requests"] == "8"  # four seats and four places in the queue


def test_more_choices_than_a_spark_has_seats_are_refused_for_good() -> None:
    _, client = world()
    refused = client.post(CHAT, json=body(CHAT, n=9))
    assert refused.status_code == 400 and "spark has 8 seats" in refused.json()["error"]["message"]
    assert client.post(CHAT, json=body(CHAT, n=9, model="m")).status_code == 200


# --- what is told of both ---------------------------------------------------------------------------------------------------


def test_the_list_has_each_with_its_own_figures() -> None:
    _, client = world(context=64)
    cards = ModelList.model_validate(client.get("/v1/models").json()).data
    assert [card.id for card in cards] == ["m", "m-fast", "s"] == client.get("/").json()["models"]
    main, _, spark = cards
    assert (main.max_model_len, spark.max_model_len) == (64, 32)
    assert (main.pace, spark.pace) == ({"standard": 20.0, "fast": 50.0}, {"spark": 200.0})
    assert main.promises == {"standard": {"most": 8}, "fast": {"most": 2, "beside_full_standard": 1}}
    assert spark.promises == {"spark": {"most": 4}}
    assert "fast" in main.service_tiers and spark.service_tiers == ["auto", "default", "flex", "scale"]
    for card in cards:
        assert ModelCard.model_validate(client.get(f"/v1/models/{card.id}").json()) == card
    listed = client.get("/v1/models", headers=ANTHROPIC).json()
    assert [(each["id"], each["max_input_tokens"]) for each in listed["data"]] == [("m", 63), ("m-fast", 63), ("s", 31)]
    assert (listed["first_id"], listed["last_id"]) == ("m", "s")
    assert client.get("/v1/models/s", headers=ANTHROPIC).json() == listed["data"][2]


@pytest.mark.parametrize("dead", ["generator", "sparkling"])
def test_health_is_ill_if_either_engine_has_ended(dead: str) -> None:
    made, client = world()
    assert client.get("/health").status_code == 200
    getattr(made, dead).alive = False
    assert (client.get("/health").status_code, client.get("/health").json()) == (503, {"status": "failed"})


def test_limit_headers_are_of_the_spark_s_places() -> None:
    _, client = world()
    headers = client.post(CHAT, json=body(CHAT)).headers
    assert headers["x-ratelimit-limit-requests"] == "8"
    assert headers["x-ratelimit-limit-tokens"] == str(4 * 200 * 60)
    headers = client.post(MESSAGES, json=body(MESSAGES)).headers
    assert headers["anthropic-ratelimit-output-tokens-limit"] == str(4 * 200 * 60)


def test_metrics_have_modes_and_engines_apart() -> None:
    made, client = world()
    made.metrics.of("s").on_step(0.02, {"spark": 3}, 4, 0.25)
    made.metrics.of("m").on_step(0.5, {"standard": 1}, 1, 0.1)
    assert client.post(CHAT, json=body(CHAT)).status_code == 200
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    samples = {(each.name, *sorted(each.labels.values())): each.value for family in families for each in family.samples}
    paces = {labels[0]: value for (name, *labels), value in samples.items() if name == "headway_pace"}
    assert paces == {"standard": 20.0, "fast": 50.0, "spark": 200.0}
    assert samples["headway_engine_busy_seconds_total", "s"] == 0.02
    assert samples["headway_engine_busy_seconds_total", "m"] == 0.5
    assert samples["headway_step_seconds_count", "s"] == 1 and samples["headway_step_rows_total", "spark"] == 3
    assert samples["headway_kv_blocks", "free", "m"] == samples["headway_kv_blocks", "free", "s"] == 7
    assert samples["headway_served_requests_total", "spark", "spark"] == 1
    names = {family.name for family in families}
    assert {"headway_evictions", "headway_cost_model_error_median", "headway_cost_model_error_p95"} <= names


def test_without_a_spark_nothing_is_told_of_one() -> None:
    made = World()
    client = TestClient(made.app)
    assert "spark" not in client.get("/metrics").text + client.get("/v1/models").text + client.get("/").text


# --- keys, limits and the books ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_a_key_without_spark_is_forbidden_it(path: str) -> None:
    made, client = world({"keys": {"alice": {"hash": hash_of(KEY), "modes": ["standard", "fast"]}}})
    refused = client.post(path, json=body(path), headers={"x-api-key": KEY})
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    assert "may not ask for spark, only for standard, fast" in refused.json()["error"]["message"]
    assert made.sparkling.requests == made.generator.requests == []
    assert client.post(path, json=body(path, model="m"), headers={"x-api-key": KEY}).status_code == 200


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_spark_s_limits_are_its_own(path: str) -> None:
    made, client = world({"limits": {"spark": {"requests": 1}, "standard": {"requests": 1}}})
    assert [client.post(path, json=body(path, model=model)).status_code for model in "mssm"] == [200, 200, 429, 429]
    refused = client.post(path, json=body(path))
    assert "1 requests a minute at spark" in refused.json()["error"]["message"]
    assert len(made.sparkling.requests) == len(made.generator.requests) == 1


def test_the_books_have_what_was_served_at_the_spark_s_price(tmp_path: Path) -> None:
    prices = {"input": 1.0, "output": 2.0, "multiplier": {"spark": 0.5}}
    made, client = world({"ledger": {"enabled": True, "url": sqlite(tmp_path)}, "prices": prices})
    for model in ("m", "s"):
        assert client.post(CHAT, json=body(CHAT, model=model)).status_code == 200
    made.sparkling.refuse = full
    assert client.post(CHAT, json=body(CHAT)).status_code == 429
    assert made.book is not None
    made.book.close()
    main, spark, refused = rows(sqlite(tmp_path))
    assert [(row["model"], row["requested_mode"], row["served_mode"]) for row in (main, spark, refused)] == [
        ("m", "standard", "standard"),
        ("s", "spark", "spark"),
        ("s", "spark", "spark"),
    ]
    assert (main["price_nano"], spark["price_nano"]) == ((8 + 2 * 4) * 1000, (8 + 2 * 4) * 500)
    assert (spark["outcome"], refused["outcome"]) == ("length", "refused")
    sums = groups(sqlite(tmp_path), "mode")
    assert [(each.group, each.requests, each.refused) for each in sums] == [(("spark",), 2, 1), (("standard",), 1, 0)]


def test_the_access_log_names_the_mode(caplog: pytest.LogCaptureFixture) -> None:
    _, client = world()
    with caplog.at_level(logging.INFO, "headway.access_log"):
        assert client.post(CHAT, json=body(CHAT)).status_code == 200
    assert "requested=spark served=spark billed=spark" in caplog.text
