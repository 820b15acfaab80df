"""The model and its spark on one real server: two models, three modes, one device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cases.client import CHAT, Client, Json, content_of, tokens_of
from cases.process import serve
from headway.catalog.pull import pull
from headway.compare.prompts import PROMPTS

pytestmark = pytest.mark.model

SPARK = "smollm2-spark"
TOKENS = 40


@pytest.fixture(scope="module")
def both() -> Iterator[Client]:
    pull(SPARK)
    process = serve("smollm2", "--spark", SPARK)
    try:
        yield process.client()
    finally:
        process.close()
    words = "\n".join(process.lines)
    assert "as mode spark" in words
    assert "Traceback" not in words


def asked(client: Client, prompt: str, model: str, tier: str = "default") -> Json:
    body = client.chat(prompt, max_tokens=TOKENS, logprobs=True) | {"model": model, "service_tier": tier, "temperature": 0.0}
    return dict(body)


def test_both_are_listed_and_the_spark_says_what_it_is(both: Client) -> None:
    cards = {card["id"]: card for card in both.get("/v1/models").json["data"]}
    assert list(cards) == ["smollm2", "smollm2-fast", SPARK]
    assert list(cards[SPARK]["pace"]) == ["spark"]
    assert cards[SPARK]["pace"]["spark"] > cards["smollm2"]["pace"]["standard"]
    assert cards[SPARK]["promises"]["spark"]["most"] >= 1


@pytest.mark.parametrize("tier", ["default", "fast"])
def test_a_spark_is_served_as_spark_whatever_tier_is_asked_for(both: Client, tier: str) -> None:
    answer = both.ok(CHAT, asked(both, "Name a colour.", SPARK, tier))
    assert (answer["model"], answer["service_tier"]) == (SPARK, "default")
    assert answer["headway"]["mode"] == answer["headway"]["billed_mode"] == "spark"
    assert content_of(answer)


def test_three_modes_at_once_say_what_each_says_alone(both: Client) -> None:
    """Greedy, of both models beside each other, more at once than there are seats for sparks at first."""
    kinds = [("smollm2", "default"), ("smollm2", "fast"), (SPARK, "default")]
    bodies = [asked(both, PROMPTS[i], model, tier) for i in range(4) for model, tier in kinds]
    alone = [both.ok(CHAT, body) for body in bodies[:3]]
    with ThreadPoolExecutor(len(bodies)) as pool:
        together = list(pool.map(lambda body: both.ok(CHAT, body), bodies))
    for before, after in zip(alone, together, strict=False):
        assert tokens_of(before) == tokens_of(after)
    assert tokens_of(alone[0]) == tokens_of(alone[1]) != tokens_of(alone[2]), "fast is the same model, a spark another"
    assert {a["headway"]["mode"] for a in together} == {"standard", "fast", "spark"}


def test_anthropics_fast_is_no_speed_of_a_spark(both: Client) -> None:
    body = {"model": SPARK, "max_tokens": 5, "messages": [{"role": "user", "content": "Hello!"}]}
    headers = {"anthropic-version": "2023-06-01"}
    refused = both.post("/v1/messages", body | {"speed": "fast"}, headers)
    assert refused.status == 400
    assert "speed" in json.loads(refused.body)["error"]["message"]
    assert both.post("/v1/messages", body | {"speed": "standard"}, headers).status == 200


def test_nothing_is_left_of_either_model(both: Client) -> None:
    for model in ("smollm2", SPARK):
        assert both.metric("headway_kv_blocks", model=model, state="used") == 0
    for mode in ("standard", "fast", "spark"):
        assert both.metric("headway_rows", mode=mode) == 0
