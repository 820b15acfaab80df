"""Responses that are kept: gone on from, read and deleted, by their own key alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cases.responses import RESPONSES
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseItemList
from starlette.testclient import TestClient

from headway.config import ServerSettings
from headway.server.responses.store import MemoryStore, Recent, StoredResponse
from server.responses.test_responses import BOTH, post, prompts, refused, response_of
from server.scripted import Script, World

A, B = {"authorization": "Bearer a"}, {"authorization": "Bearer b"}


def get(world: World, path: str, headers: dict[str, str] = A) -> Any:
    return TestClient(world.app).get(f"{RESPONSES}/{path}", headers=headers)


@BOTH
def test_a_conversation_goes_on(stream: bool) -> None:
    world = World(Script(tokens=tuple(b"one")), Script(tokens=tuple(b"two")), Script(tokens=tuple(b"three")), context=400)
    first = response_of(post(world, stream=stream, instructions="Be."))
    second = response_of(post(world, stream=stream, previous_response_id=first["id"], input="and?"))
    assert second["previous_response_id"] == first["id"]
    items = [{"role": "user", "content": "so?"}]
    response_of(post(world, stream=stream, previous_response_id=second["id"], input=items, instructions="Now."))
    assert prompts(world) == [
        "<system>Be.<user>hi",
        "<user>hi<assistant>one<user>and?",
        "<system>Now.<user>hi<assistant>one<user>and?<assistant>two<user>so?",
    ]
    fork = response_of(post(world, previous_response_id=first["id"], input="else?"))
    assert prompts(world)[-1] == "<user>hi<assistant>one<user>else?" and fork["id"] != second["id"]


def test_another_key_finds_nothing() -> None:  # H5
    world = World(context=400)
    mine = post(world, headers=A, input="my codeword is X").json()
    for headers in (B, {}):
        assert refused(get(world, mine["id"], headers), "response_id", 404) == refused(
            get(world, "resp_" + mine["id"][5:], headers), "response_id", 404
        )
        refused(get(world, f"{mine['id']}/input_items", headers), "response_id", 404)
        refused(TestClient(world.app).delete(f"{RESPONSES}/{mine['id']}", headers=headers), "response_id", 404)
        reply = post(world, headers=headers, previous_response_id=mine["id"])
        message = refused(reply, "previous_response_id")
        assert "codeword" not in message and reply.json()["error"]["code"] == "previous_response_not_found"
    assert get(world, mine["id"]).json() == mine
    assert post(world, headers=A, previous_response_id=mine["id"]).status_code == 200


def test_what_is_not_to_be_stored_is_not_found() -> None:
    world = World()
    response = post(world, headers=A, store=False).json()
    refused(get(world, response["id"]), "response_id", 404)
    refused(post(world, headers=A, previous_response_id=response["id"]), "previous_response_id")


def test_what_fails_is_not_kept() -> None:
    world = World(Script(tokens=tuple(b"abc"), end="error", error="the engine failed"))
    failed = response_of(post(world, headers=A, stream=True))
    refused(get(world, failed["id"]), "response_id", 404)


def test_deleting() -> None:
    world = World(context=400)
    first = post(world, headers=A).json()
    second = post(world, headers=A, previous_response_id=first["id"]).json()
    delete = TestClient(world.app).delete
    assert delete(f"{RESPONSES}/{first['id']}", headers=A).json() == {
        "id": first["id"],
        "object": "response",
        "deleted": True,
    }
    refused(delete(f"{RESPONSES}/{first['id']}", headers=A), "response_id", 404)
    refused(get(world, first["id"]), "response_id", 404)
    assert post(world, headers=A, previous_response_id=second["id"]).status_code == 200


def test_the_time_limit() -> None:
    world = World(settings=ServerSettings(responses_hours=1e-7))
    response = post(world, headers=A).json()
    refused(get(world, response["id"]), "response_id", 404)


def test_input_items_in_pages() -> None:
    world = World(context=400)
    call = {"type": "function_call", "id": "fc_9", "call_id": "c", "name": "now", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "12:00"}]}
    first = post(world, headers=A, input=[{"role": "user", "content": "hi"}, call, output]).json()
    second = post(world, headers=A, previous_response_id=first["id"], input="and?").json()
    whole = get(world, f"{second['id']}/input_items?order=asc").json()
    ResponseItemList.model_validate(whole)
    kinds = ["message", "function_call", "function_call_output", "message", "message"]
    assert [item["type"] for item in whole["data"]] == kinds and whole["has_more"] is False
    assert whole["data"][1]["id"] == "fc_9" and whole["data"][3] == first["output"][0]
    assert get(world, f"{second['id']}/input_items").json()["data"] == whole["data"][::-1]
    pages, after = [], ""
    while True:
        page = get(world, f"{second['id']}/input_items?order=asc&limit=2{after}").json()
        pages += page["data"]
        assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert pages == whole["data"]
    for query, param in (("limit=0", "limit"), ("limit=x", "limit"), ("order=up", "order"), ("after=x", "after")):
        refused(get(world, f"{second['id']}/input_items?{query}"), param)
    refused(get(world, f"{second['id']}?stream=true"), "stream")


def stored(name: str, size: int = 10) -> StoredResponse:
    return StoredResponse({"id": name, "output": [], "text": "x" * size}, ())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(1, 400), st.integers(0, 5)), max_size=40),
    st.integers(0, 2000),
)
def test_both_limits_hold_whatever_comes(puts: list[tuple[str, int, int, int]], max_bytes: int) -> None:
    async def check() -> None:
        now = 0.0
        store = MemoryStore(max_bytes, 10, lambda: now)
        kept: dict[tuple[str, str], tuple[StoredResponse, float]] = {}
        for key, number, size, wait in puts:
            now += wait
            response = stored(f"resp_{number}", size)
            await store.put(key, response)
            kept[key, response.id] = (response, now)
            total = 0
            for (owner, name), (latest, at) in kept.items():
                found = await store.get(owner, name)
                assert found is None or (found is latest and now - at < 10)
                total += 0 if found is None else found.size()
            assert total <= max_bytes
            assert (await store.get(key, response.id) is response) or sum(
                each.size() for (owner, _), (each, at) in kept.items() if owner == key or now - at < 10
            ) > max_bytes

    asyncio.run(check())


def test_a_key_with_much_pushes_out_its_own() -> None:
    async def check() -> None:
        store = MemoryStore(2000, 10)
        await store.put("small", stored("resp_0"))
        for number in range(50):
            await store.put("large", stored(f"resp_{number}", 300))
        assert await store.get("small", "resp_0") is not None
        assert await store.get("large", "resp_49") is not None and await store.get("large", "resp_0") is None
        assert await store.delete("large", "resp_49") and not await store.delete("large", "resp_49")

    asyncio.run(check())


def test_a_connection_keeps_its_last_responses() -> None:
    recent = Recent()
    for number in range(Recent.MOST + 1):
        recent.put(stored(f"resp_{number}"), None)
    assert recent.get("resp_0") is None and recent.get("resp_1") is not None


def test_nothing_is_kept_where_the_limit_is_none() -> None:
    world = World(settings=ServerSettings(responses_mb=0))
    response = post(world, headers=A).json()
    refused(get(world, response["id"]), "response_id", 404)


@pytest.mark.parametrize("path", ["resp_x", "resp_x/input_items"])
def test_an_unknown_id(path: str) -> None:
    assert "resp_x" in refused(get(World(), path), "response_id", 404)
