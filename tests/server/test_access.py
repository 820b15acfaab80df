"""Keys, limits and the ledger over HTTP, in both dialects' words."""

from __future__ import annotations

import logging
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cases.client import CHAT, COMPLETIONS, wait_for
from ledger.books import rows, sqlite
from starlette.testclient import TestClient

from headway.access.keys import hash_of, new_key
from headway.config import Settings
from headway.errors import RequestError
from headway.server.anthropic.shapes import MessageError
from headway.server.openai.shapes import ErrorBody

from .live import live
from .scripted import Script, World

MESSAGES = "/v1/messages"
ALICE, BOB = new_key(), new_key()
Json = dict[str, Any]
ALICE_ALONE = {"keys": {"alice": {"hash": hash_of(ALICE)}}}


def world(tree: Json | None = None, **options: Any) -> tuple[World, TestClient]:
    config = Settings.model_validate({"ledger": {"enabled": False}, **(tree or {})})
    made = World(Script(tokens=tuple(b"scripted"), times=8), config=config, **options)
    return made, TestClient(made.app)


def chat(**fields: Any) -> Json:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, **fields}


# --- keys -------------------------------------------------------------------------------------------------------------------


def test_without_a_key_there_is_nothing_but_health() -> None:
    made, client = world(ALICE_ALONE)
    for method, path in (("POST", CHAT), ("POST", COMPLETIONS), ("GET", "/v1/models"), ("GET", "/metrics"), ("GET", "/nope")):
        response = client.request(method, path, json=chat())
        assert response.status_code == 401 and response.headers["www-authenticate"] == "Bearer"
        error = ErrorBody.model_validate(response.json()).error
        assert (error.type, error.code) == ("authentication_error", "invalid_api_key")
    for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
        refused = client.post(path, json=chat())
        assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
        assert MessageError.model_validate(refused.json()).request_id == refused.headers["request-id"]
    assert client.get("/health").status_code == 200
    assert made.generator.requests == []


@pytest.mark.parametrize("headers", [{"authorization": f"Bearer {ALICE}"}, {"x-api-key": ALICE}])
def test_with_a_key_all_is_there_and_its_name_goes_to_the_scheduler(headers: dict[str, str]) -> None:
    made, client = world(ALICE_ALONE)
    for path in (CHAT, MESSAGES):
        assert client.post(path, json=chat(), headers=headers).status_code == 200
    assert client.get("/metrics", headers=headers).status_code == 200
    assert {request.key for request in made.generator.requests} == {"alice"}


def test_a_page_can_read_that_its_key_is_wrong_and_preflights_need_none() -> None:
    origin = {"Origin": "http://localhost:3000"}
    _, client = world({**ALICE_ALONE, "server": {"cors_origins": ["http://localhost:3000"]}})
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-api-key"}
    assert client.options(CHAT, headers={**origin, **asked}).status_code == 200
    refused = client.post(CHAT, json=chat(), headers=origin)
    assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == origin["Origin"]


def test_without_keys_different_callers_are_told_apart_for_fairness_alone() -> None:
    made, client = world()
    for headers in ({}, {"x-api-key": "none"}, {"x-api-key": "other"}, {"authorization": "Bearer other"}):
        assert client.post(CHAT, json=chat(), headers=headers).status_code == 200
    keys = [request.key for request in made.generator.requests]
    assert len(set(keys)) == 3 and keys[2] == keys[3] and not {"none", "other"} & set(keys)


def test_a_key_for_some_modes_is_told_in_each_dialect_s_way() -> None:
    _, client = world(
        {"keys": {"alice": {"hash": hash_of(ALICE), "modes": ["standard"]}, "bob": {"hash": hash_of(BOB), "modes": ["fast"]}}}
    )
    alice, bob = {"x-api-key": ALICE}, {"x-api-key": BOB}
    assert client.post(CHAT, json=chat(service_tier="fast"), headers=alice).json()["service_tier"] == "default"
    refused = client.post(MESSAGES, json=chat(speed="fast"), headers=alice)
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error")
    assert refused.headers["x-should-retry"] == "false" and "may not ask for fast" in refused.json()["error"]["message"]
    for path, kind in ((CHAT, "permission_error"), (MESSAGES, "permission_error")):
        refused = client.post(path, json=chat(), headers=bob)
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, kind)
    assert client.post(MESSAGES, json=chat(speed="fast"), headers=bob).json()["usage"]["speed"] == "fast"


# --- limits -----------------------------------------------------------------------------------------------------------------


def test_fast_over_its_limit_is_served_at_default_and_says_so() -> None:
    _, client = world({"limits": {"fast": {"requests": 1}}})
    answers = [client.post(CHAT, json=chat(service_tier="fast")).json() for _ in range(3)]
    assert [answer["service_tier"] for answer in answers] == ["fast", "default", "default"]
    for answer in answers[1:]:
        told = answer["headway"]
        assert (told["requested_mode"], told["mode"], told["billed_mode"]) == ("fast", "standard", "standard")
    text = client.get("/metrics").text
    assert 'headway_served_requests_total{requested="fast",served="fast"} 1.0' in text
    assert 'headway_served_requests_total{requested="fast",served="standard"} 2.0' in text
    assert 'headway_over_limit_total{limit="requests",mode="fast"} 2.0' in text
    assert "headway_downgrades_total 2.0" in text


def test_figures_that_were_asked_for_are_not_downgraded_over_a_limit() -> None:
    _, client = world({"limits": {"fast": {"requests": 0}}})
    refused = client.post(CHAT, json=chat(), headers={"x-slo-tpot-ms": "25"})
    assert refused.status_code == 429 and refused.headers["x-should-retry"] == "false"


def test_fast_over_its_limit_is_refused_in_messages_with_headers_of_its_own() -> None:
    _, client = world({"limits": {"fast": {"output_tokens": 10, "input_tokens": 100, "requests": 5}}})
    first = client.post(MESSAGES, json=chat(speed="fast"))
    assert (first.headers["anthropic-fast-output-tokens-limit"], first.headers["anthropic-fast-output-tokens-remaining"]) == (
        "10",
        "6",
    )
    refused = client.post(MESSAGES, json=chat(speed="fast", max_tokens=8))
    assert refused.status_code == 429 and "x-should-retry" not in refused.headers
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    left = {name: value for name, value in refused.headers.items() if name.endswith("-remaining")}
    prompt = len("<user>hi")
    assert left == {
        "anthropic-fast-requests-remaining": "1",  # the machine has fewer places than the key has requests
        "anthropic-fast-input-tokens-remaining": str(100 - prompt),
        "anthropic-fast-output-tokens-remaining": "6",
        "anthropic-fast-tokens-remaining": "6",
    }
    standard = client.post(MESSAGES, json=chat())
    assert standard.status_code == 200 and not [name for name in standard.headers if name.startswith("anthropic-fast")]


@pytest.mark.parametrize(("path", "kind"), [(CHAT, "rate_limit_error"), (MESSAGES, "rate_limit_error")])
def test_standard_over_its_limit_is_a_429(path: str, kind: str) -> None:
    """Not Anthropic's 529: it is the key that is over something, not the machine."""
    _, client = world({"limits": {"standard": {"requests": 1}}})
    assert client.post(path, json=chat()).status_code == 200
    refused = client.post(path, json=chat())
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, kind)
    name = "x-ratelimit-remaining-requests" if path == CHAT else "anthropic-ratelimit-requests-remaining"
    assert refused.headers[name] == "0"


def test_the_headers_have_the_numbers_of_the_limit_that_binds() -> None:
    """The scripted machine has 16 places, and its 8 seats come to 9,600 output tokens a minute."""
    for limits, requests, tokens in (
        ({}, ("16", "16"), ("9600", "9600")),
        ({"requests": 1000, "output_tokens": 10**6}, ("16", "16"), ("9600", "9600")),
        ({"requests": 3, "output_tokens": 100}, ("3", "2"), ("100", "96")),
        ({"input_tokens": 16}, ("16", "16"), ("16", "8")),
    ):
        _, client = world({"limits": {"standard": limits}})
        headers = client.post(CHAT, json=chat()).headers
        assert (headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]) in (requests, ("16", "15"))
        assert headers["x-ratelimit-limit-tokens"] == tokens[0]
        if tokens[0] != "9600":
            assert headers["x-ratelimit-remaining-tokens"] == tokens[1]


def test_what_an_answer_didn_t_use_comes_back() -> None:
    _, client = world({"limits": {"standard": {"output_tokens": 100}}})
    asks = [client.post(CHAT, json=chat(max_tokens=50, stop="d")).status_code for _ in range(8)]
    assert asks == [200] * 7 + [429], "of 50 tokens that it may have, an answer takes 8"


def test_a_request_without_a_place_takes_nothing() -> None:
    made, client = world({"limits": {"standard": {"requests": 2, "output_tokens": 8}}})
    made.generator.refuse = lambda request: RequestError(429, "full", retry_after=0.1)
    for _ in range(5):
        assert client.post(CHAT, json=chat()).json()["error"]["message"] == "full"
    made.generator.refuse = lambda request: None
    for _ in range(2):
        assert client.post(CHAT, json=chat()).status_code == 200


def test_choices_of_one_prompt_take_its_input_once() -> None:
    _, client = world({"limits": {"standard": {"input_tokens": len("<user>hi"), "requests": 1, "output_tokens": 12}}})
    assert client.post(CHAT, json=chat(n=3)).status_code == 200


def test_exactly_so_many_pass_and_the_wait_is_true() -> None:
    """J1, over sockets: 20 at once against a limit of 3."""
    with live({"tokens": [120], "pause": 0.05}, config={"limits": {"standard": {"requests": 3}}}) as (_, client):
        for path, body in ((CHAT, client.chat(max_tokens=1)), (MESSAGES, chat())):
            with ThreadPoolExecutor(20) as pool:
                replies = list(pool.map(lambda _, path=path, body=body: client.post(path, body), range(20)))
            assert [reply.status for reply in replies].count(200) == (3 if path == CHAT else 0)
            for reply in (reply for reply in replies if reply.status != 200):
                assert reply.status == 429
                left = [value for name, value in reply.headers.items() if "requests" in name and "remaining" in name]
                assert left == ["0"]
                wait = int(reply.headers["retry-after"])
                assert 1 <= wait <= 60 and wait * 1000 >= int(reply.headers["retry-after-ms"]) > (wait - 1) * 1000


# --- the ledger -------------------------------------------------------------------------------------------------------------


def test_rows_tell_what_was_asked_for_served_and_billed(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    tree = {"limits": {"fast": {"requests": 1}}, "ledger": {"url": url}, "prices": {"input": 1.0, "output": 2.0}, **ALICE_ALONE}
    made, client = world(tree)
    headers = {"x-api-key": ALICE}
    sent = [
        client.post(CHAT, json=chat(service_tier="fast"), headers=headers),
        client.post(CHAT, json=chat(service_tier="fast"), headers=headers),
        client.post(MESSAGES, json=chat(speed="fast"), headers=headers),
        client.post(MESSAGES, json=chat(), headers=headers),
        client.post(COMPLETIONS, json={"model": "m", "prompt": ["ab", "cd"], "n": 2, "max_tokens": 3}, headers=headers),
        client.post(CHAT, json={}, headers=headers),
    ]
    assert [response.status_code for response in sent] == [200, 200, 429, 200, 200, 400]
    assert made.book is not None
    made.book.close()
    written = rows(url)
    assert [row["id"] for row in written] == [response.headers["x-request-id"] for response in sent[:5]], (
        "a 400 asks for nothing"
    )
    assert [(row["requested_mode"], row["served_mode"], row["outcome"]) for row in written] == [
        ("fast", "fast", "length"),
        ("fast", "standard", "length"),
        ("fast", "fast", "refused"),
        ("standard", "standard", "length"),
        ("standard", "standard", "length"),
    ]
    assert [(row["dialect"], row["endpoint"], row["key"]) for row in written[1:3]] == [
        ("openai", CHAT, "alice"),
        ("anthropic", MESSAGES, "alice"),
    ]
    prompt = len("<user>hi")
    assert [row["price_nano"] for row in written[:4]] == [6 * (prompt + 8) * 1000, (prompt + 8) * 1000, 0, (prompt + 8) * 1000]
    usage = sent[4].json()["usage"]
    assert (written[4]["prompt_tokens"], written[4]["output_tokens"]) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert written[0]["ttft"] == 1.0


def test_what_a_client_left_is_in_the_books_and_the_limit_knows(tmp_path: Path) -> None:
    """J3 in small, and H3: the ledger says what was delivered."""
    url = sqlite(tmp_path)
    config = {"ledger": {"url": url}, "limits": {"standard": {"output_tokens": 1000}}}
    with live({"tokens": [120], "times": 50_000, "pause": 0.01}, config=config) as (_, client):
        for _ in range(5):  # each holds 900 of the 1,000 while it runs
            wait_for(lambda: client.metric("headway_rows", mode="standard") == 0)
            with client.open_stream(CHAT, client.chat(max_tokens=900)) as events:
                next(events)
                next(events)
        wait_for(lambda: len(rows(url)) == 5)  # a leaver is noticed a moment later: the refusal would be written before it
        assert client.post(CHAT, client.chat(max_tokens=1000)).status == 429
        wait_for(lambda: len(rows(url)) == 6)
    written = rows(url)
    assert [row["outcome"] for row in written] == ["cancelled"] * 5 + ["refused"]
    assert all(0 < row["output_tokens"] < 900 for row in written[:5])


def test_a_killed_server_s_books_are_sound_and_lack_a_second_at_the_most(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    with live({"tokens": [120], "times": 2}, config={"ledger": {"url": url}}) as (process, client):
        ended: list[tuple[str, float]] = []
        begun = time.monotonic()
        while time.monotonic() < begun + 3.5:
            reply = client.post(CHAT, client.chat(max_tokens=2))
            ended.append((reply.headers["x-request-id"], time.monotonic()))
        wait_for(lambda: Path(url.removeprefix("sqlite:///")).exists() and rows(url))
        process.kill()
        killed = time.monotonic()
        process.wait()
    written = [row["id"] for row in rows(url)]
    assert written == [name for name, _ in ended][: len(written)], "no row is missing between others, none is there twice"
    slack = 1.0  # for a machine that is busy
    assert {name for name, at in ended if at < killed - 1.0 - slack} <= set(written)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_stopped_server_has_written_everything(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    with live({"tokens": [120], "times": 50_000, "pause": 0.01}, config={"ledger": {"url": url}}, grace_s=0.1) as (
        process,
        client,
    ):
        client.post(CHAT, client.chat(max_tokens=2))
        with client.open_stream(CHAT, client.chat(max_tokens=5000)) as events:
            next(events)
            process.terminate()
            last = list(events)[-1]
        assert "shutting down" in last["error"]["message"]
        assert process.wait(30) == 0
    assert [row["outcome"] for row in rows(url)] == ["length", "cancelled"]


def test_a_disk_that_can_t_be_written_serves_on(tmp_path: Path) -> None:
    (tmp_path / "books").write_text("a file where the folder should be")
    with live({"tokens": [120]}, config={"ledger": {"url": sqlite(tmp_path)}}) as (process, client):
        for _ in range(3):
            assert client.post(CHAT, client.chat(max_tokens=1)).status == 200
        wait_for(lambda: client.metric("headway_ledger_waiting_rows") == 3)
        assert client.metric("headway_ledger_lost_rows_total") == 0
        process.terminate()
        assert process.wait(30) == 0


def test_the_access_log_says_key_and_modes(caplog: pytest.LogCaptureFixture) -> None:
    _, client = world({"limits": {"fast": {"requests": 0}}, **ALICE_ALONE})
    with caplog.at_level(logging.INFO, "headway.access_log"):
        client.post(CHAT, json=chat(service_tier="priority"), headers={"x-api-key": ALICE})
        client.post(CHAT, json=chat())
        client.get("/v1/models%0Aforged", headers={"x-api-key": ALICE})
    served, unknown, forged = [record.getMessage() for record in caplog.records]
    assert ' alice "POST /v1/chat/completions" 200 ' in served
    assert "requested=fast served=standard billed=standard req_" in served
    assert ' - "POST /v1/chat/completions" 401 ' in unknown and "requested" not in unknown
    assert "\n" not in forged and ALICE not in caplog.text
