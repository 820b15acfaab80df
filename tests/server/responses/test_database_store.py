"""Responses in the ledger's database: they outlive the server, within their limits; a database that fails holds up nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cases.responses import RESPONSES, ask, body, text_of
from ledger.books import sqlite
from starlette.testclient import TestClient
from websockets.sync.client import connect

from headway.config import LedgerSettings, ServerSettings
from headway.errors import RequestError
from headway.server.responses.database_store import DatabaseStore, open_store
from headway.server.responses.store import StoredResponse
from server.made_up import made_up
from server.responses.test_stored import A, B, stored
from server.scripted import Script, World


def opened(folder: Path, **limits: Any) -> DatabaseStore:
    return DatabaseStore(sqlite(folder), **{"max_bytes": 10**6, "seconds": 100.0, **limits})


def test_what_was_kept_is_there_for_the_next_server(tmp_path: Path) -> None:
    odd = StoredResponse({"id": "resp_1", "output": [{"text": "naïve \u0000 🫠"}]}, ({"type": "message", "n": 1.5},))

    async def before() -> None:
        await store.put("a", odd)
        assert await store.get("a", "resp_1") is odd
        assert await store.get("b", "resp_1") is None
        await store.put("a", stored("resp_2"))
        assert await store.delete("a", "resp_2") and not await store.delete("a", "resp_2")

    async def after() -> None:
        assert await store.get("a", "resp_1") == odd
        assert await store.get("b", "resp_1") is None and not await store.delete("b", "resp_1")
        assert await store.get("a", "resp_2") is None
        assert await store.delete("a", "resp_1") and await store.get("a", "resp_1") is None

    for work in (before, after):
        store = opened(tmp_path)
        asyncio.run(work())
        store.close()


def test_what_is_written_is_no_longer_in_memory(tmp_path: Path) -> None:
    async def check() -> None:
        response = stored("resp_1")
        await store.put("a", response)
        await store.get("a", "resp_other")  # comes after the write
        await asyncio.sleep(0)
        found = await store.get("a", "resp_1")
        assert found == response and found is not response

    store = opened(tmp_path)
    asyncio.run(check())
    store.close()


def test_both_limits_hold_over_a_restart(tmp_path: Path) -> None:
    async def fill() -> None:
        await store.put("small", stored("resp_0"))
        for number in range(50):
            await store.put("large", stored(f"resp_{number}", 300))
            await store.get("x", "x")

    async def look() -> None:
        found = [await store.get("large", f"resp_{number}") is not None for number in range(50)]
        assert found[-1] and not found[0] and found == sorted(found)
        assert await store.get("small", "resp_0") is not None

    async def late() -> None:
        assert await store.get("small", "resp_0") is None and not await store.delete("small", "resp_0")

    for work, now in ((fill, 1000.0), (look, 1050.0), (late, 1101.0)):
        store = opened(tmp_path, max_bytes=2000, clock=lambda now=now: now)
        asyncio.run(work())
        store.close()
    with sqlite3.connect(tmp_path / "books" / "ledger.db") as connection:
        assert connection.execute("select count(*) from headway_responses").fetchone() == (0,)


def test_a_database_that_fails_is_warned_of_once_and_memory_serves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "books").write_text("a file where the folder should be")

    async def check() -> None:
        for number in range(3):
            await store.put("a", stored(f"resp_{number}"))
        assert await store.get("a", "resp_0") is not None and await store.get("a", "resp_x") is None
        with pytest.raises(RequestError) as refused:
            await store.delete("a", "resp_0")
        assert refused.value.status == 503 and await store.get("a", "resp_0") is None

    store = opened(tmp_path)
    with caplog.at_level(logging.WARNING, "headway.server"):
        asyncio.run(check())
    store.close()
    assert [record.getMessage() for record in caplog.records if "responses are kept in memory" in record.getMessage()] == [
        record.getMessage() for record in caplog.records
    ]
    assert len(caplog.records) == 1


def test_a_conversation_goes_on_after_a_restart_and_is_still_its_keys_own(tmp_path: Path) -> None:
    first = ""
    for tokens in (b"one", b"two"):
        store = opened(tmp_path)
        world = World(Script(tokens=tuple(tokens)), context=400, responses=store)
        client = TestClient(world.app)
        if not first:
            first = client.post(RESPONSES, json={"model": "m", "input": "hi"}, headers=A).json()["id"]
        else:
            asked = {"model": "m", "input": "and?", "previous_response_id": first}
            assert client.post(RESPONSES, json=asked, headers=B).json()["error"]["code"] == "previous_response_not_found"
            assert client.post(RESPONSES, json=asked, headers=A).status_code == 200
            assert bytes(world.generator.requests[-1].prompt).decode() == "<user>hi<assistant>one<user>and?"
            assert client.get(f"{RESPONSES}/{first}", headers=A).json()["id"] == first
        store.close()


def test_over_sockets_too_and_a_server_that_is_stopped_has_written_all(tmp_path: Path) -> None:
    config = {"ledger": {"url": sqlite(tmp_path)}}
    with made_up(config, 0.0) as (process, client):
        first = ask(client, body(client, "hi", max_output_tokens=5))
        process.terminate()
        assert process.wait(20) == 0
    with made_up(config, 0.0) as (_, client):
        second = ask(client, body(client, "and?", max_output_tokens=5, previous_response_id=first["id"]))
        assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"] and text_of(second)
        with connect(f"ws://{client.host}:{client.port}{RESPONSES}", compression=None) as wire:
            asked = {"type": "response.create", "model": "m", "input": "so?", "previous_response_id": second["id"]}
            wire.send(json.dumps({**asked, "max_output_tokens": 2}))
            assert json.loads(wire.recv(timeout=20))["type"] == "response.created"


def test_without_a_ledger_nothing_is_written() -> None:
    assert open_store(ServerSettings(), LedgerSettings(enabled=False)) is None
    assert open_store(ServerSettings(responses_mb=0), LedgerSettings()) is None
