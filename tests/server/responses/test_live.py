"""The WebSocket on a real socket: frames, pings, sizes, and the server's end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cases.client import Client, wait_for
from cases.responses import RESPONSES, checked_event, join_events, text_of
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close
from websockets.sync.client import ClientConnection, connect

from server.live import live

ENDLESS = {"tokens": [120], "times": 50_000, "pause": 0.01}


@pytest.fixture(scope="module")
def quick() -> Iterator[Client]:
    with live({"tokens": list(b"quick")}, max_body_mb=1) as (_, client):
        yield client


def open_socket(client: Client, **options: Any) -> ClientConnection:
    return connect(f"ws://{client.host}:{client.port}{RESPONSES}", compression=None, **options)


def send(socket: ClientConnection, **fields: Any) -> None:
    socket.send(json.dumps({"type": "response.create", "model": "m", "input": "hi", **fields}))


def events_of(socket: ClientConnection) -> Iterator[dict[str, Any]]:
    """Of one response."""
    while True:
        event = checked_event(json.loads(socket.recv(timeout=20)))
        yield event
        if event["type"] in ("response.completed", "response.incomplete", "response.failed", "error"):
            return


def closed(socket: ClientConnection) -> Close | None:
    with pytest.raises(ConnectionClosed) as ended:
        socket.recv(timeout=20)
    return ended.value.rcvd


def rows(client: Client) -> float:
    return client.metric("headway_rows", mode="standard")


def test_turns_and_pings_on_one_connection(quick: Client) -> None:
    with open_socket(quick) as socket:
        first = join_events(events_of_sent(socket))
        assert socket.ping().wait(10)
        second = join_events(events_of_sent(socket, previous_response_id=first["id"]))
        assert text_of(first) == text_of(second) == "quick"
        assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


def events_of_sent(socket: ClientConnection, **fields: Any) -> Iterator[dict[str, Any]]:
    send(socket, **fields)
    return events_of(socket)


def test_a_message_may_be_as_large_as_a_body(quick: Client) -> None:
    with open_socket(quick) as socket:
        (event,) = events_of_sent(socket, input="x" * 900_000)
        assert event["status"] == 400 and event["error"]["code"] == "context_length_exceeded"
        socket.send("x" * 1_000_001)
        end = closed(socket)
        assert end is not None and end.code == 1009
    assert quick.get("/health").status == 200


def test_a_client_that_goes_frees_its_rows() -> None:
    with live(ENDLESS) as (_, client):
        for leave in (lambda socket: socket.close(), lambda socket: socket.socket.close()):
            with open_socket(client) as socket:
                send(socket)
                send(socket, stream_id="other")
                wait_for(lambda: rows(client) == 2)
                leave(socket)
                wait_for(lambda: rows(client) == 0)


def test_a_response_may_end_before_the_server_does() -> None:
    with live({"tokens": [120], "times": 60, "pause": 0.02}, grace_s=30) as (process, client):
        with open_socket(client) as socket, open_socket(client) as idle:
            send(socket)
            events = events_of(socket)
            begun = [next(events)]
            process.terminate()
            assert join_events([*begun, *events])["status"] == "completed"
            for each in (socket, idle):
                end = closed(each)
                assert end is not None and end.code == 1012
        assert process.wait(20) == 0


def test_what_still_runs_after_the_grace_is_told() -> None:
    with live(ENDLESS, grace_s=0.3) as (process, client):
        with open_socket(client) as socket:
            send(socket)
            events = events_of(socket)
            begun = [next(events)]
            process.terminate()
            response = join_events([*begun, *events])
            assert response["status"] == "failed" and "shutting down" in response["error"]["message"]
        assert process.wait(20) == 0


def test_idle_connections_do_not_hold_up_the_end() -> None:
    with live(ENDLESS, grace_s=1000) as (process, client), open_socket(client) as socket:
        process.terminate()
        end = closed(socket)
        assert end is not None and end.code == 1012
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "http://page.example"}, 403), ({"X-Long": "y" * 9000}, 431), ({f"X-{n}": "y" for n in range(120)}, 431)],
)
def test_a_handshake_that_is_refused_says_why(quick: Client, headers: dict[str, str], status: int) -> None:
    with pytest.raises(InvalidStatus) as refused, open_socket(quick, additional_headers=headers):
        pass
    response = refused.value.response
    assert response.status_code == status and set(json.loads(response.body or b"")) == {"error"}


def test_other_paths_and_methods_are_no_websockets(quick: Client) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://{quick.host}:{quick.port}/v1/chat/completions")
    assert refused.value.response.status_code in (403, 404)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert quick.get(RESPONSES).status == 405
    assert 400 <= quick.post(RESPONSES, {"model": "m", "input": "hi"}, upgrade).status < 500
    assert 400 <= quick.get(RESPONSES, upgrade).status < 500
    assert quick.get("/health").status == 200
