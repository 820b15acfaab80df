"""Speeds: the same text at both, and every answer says what was served."""

from __future__ import annotations

import pytest

from cases.client import CHAT, COMPLETIONS, Client, content_of

pytestmark = pytest.mark.model


def test_both_speeds_give_the_same_text_and_say_which_it_was(server: Client) -> None:
    body = server.chat("Name three colours.", max_tokens=40)
    texts = set()
    for fields, tier, mode in (
        ({}, "default", "standard"),
        ({"service_tier": "flex"}, "default", "standard"),
        ({"service_tier": "priority"}, "priority", "fast"),
        ({"service_tier": "fast"}, "fast", "fast"),
        ({"model": f"{server.model}-fast", "service_tier": "auto"}, "priority", "fast"),
    ):
        for stream in (False, True):
            answer = server.ok(CHAT, {**body, **fields, "stream": stream})
            assert (answer["service_tier"], answer["headway"]["mode"]) == (tier, mode)
            assert answer["headway"]["pace"] > 0 and 0 <= answer["headway"]["attainment"] <= 1
            assert all(seconds >= 0 for seconds in answer["time_info"].values())
            texts.add(content_of(answer))
    assert len(texts) == 1


def test_an_explicit_pace_is_promised_or_refused(server: Client) -> None:
    paces = server.get("/v1/models").json["data"][0]["pace"]
    standard, fast = paces["standard"], paces["fast"]
    body = server.completion(max_tokens=4)
    for pace, mode in ((standard / 2, "standard"), ((standard + fast) / 2, "fast")):
        answer = server.ok(COMPLETIONS, body, {"x-slo-tpot-ms": str(1000 / pace)})
        assert answer["headway"]["mode"] == mode and answer["headway"]["pace"] == pytest.approx(pace)
    reply = server.post(COMPLETIONS, body, {"x-slo-tpot-ms": str(1000 / (fast * 1.1))})
    assert (reply.status, reply.error["param"]) == (400, "x-slo-tpot-ms")
    for bad in ("0", "-1", "x", "nan"):
        assert server.post(COMPLETIONS, body, {"x-slo-tpot-ms": bad}).status == 400


def test_a_first_token_is_promised_or_the_request_refused_at_once(server: Client) -> None:
    body = server.completion(max_tokens=4)
    assert server.ok(COMPLETIONS, body, {"x-slo-ttft-ms": "5000"})["headway"]["mode"] == "standard"
    reply = server.post(COMPLETIONS, body, {"x-slo-ttft-ms": "0.1"})
    assert reply.status == 429
    assert "can't be promised now" in reply.error["message"]
    assert int(reply.headers["retry-after"]) >= 1
    fast = server.post(COMPLETIONS, {**body, "service_tier": "fast"}, {"x-slo-ttft-ms": "0.1"})
    assert fast.status == 429, "figures were asked for: standard instead would break them"
    assert server.post(COMPLETIONS, body, {"x-slo-ttft-ms": "soon"}).error["param"] == "x-slo-ttft-ms"


def test_the_models_page_says_how_many_paces_can_be_promised(server: Client) -> None:
    promises = server.get("/v1/models").json["data"][0]["promises"]
    assert promises["standard"]["most"] == 32
    assert 2 <= promises["fast"]["beside_full_standard"] < promises["fast"]["most"]


def test_words_that_are_not_on_offer_are_refused(server: Client) -> None:
    for tier in ("ultrafast", "turbo", ""):
        assert (
            "auto, default, flex, scale, priority, fast" in server.post(CHAT, server.chat(service_tier=tier)).error["message"]
        )
    reply = server.post(CHAT, server.chat(model="gpt-5"))
    assert (reply.status, reply.error["code"]) == (404, "model_not_found")
    assert server.model in reply.error["message"]
