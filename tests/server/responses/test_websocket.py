"""/v1/responses as a WebSocket, over a scripted model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cases.responses import RESPONSES, calls_of, checked_event, join_events, text_of
from starlette.testclient import TestClient, WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from headway.config import ServerSettings
from headway.errors import RequestError
from headway.server.responses import websocket as module
from server.responses.test_responses import CALL, TOOL, post, prompts
from server.scripted import Script, World

Json = dict[str, Any]
A, B = {"authorization": "Bearer a"}, {"authorization": "Bearer b"}
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


@contextmanager
def connected(world: World, headers: dict[str, str] = A) -> Iterator[WebSocketTestSession]:
    with TestClient(world.app).websocket_connect(RESPONSES, headers=headers) as socket:
        yield socket


def send(socket: WebSocketTestSession, **fields: Any) -> None:
    socket.send_json({"type": "response.create", "model": "m", "input": "hi", **fields})


def turn(socket: WebSocketTestSession) -> list[Json]:
    """The events of one response, up to its last."""
    events: list[Json] = []
    while not events or events[-1]["type"] not in ENDS:
        events.append(checked_event(socket.receive_json()))
    return events


def ask(socket: WebSocketTestSession, **fields: Any) -> Json:
    send(socket, **fields)
    return join_events(turn(socket))


def refused(socket: WebSocketTestSession, status: int, param: str | None, code: str | None = None) -> Json:
    (event,) = turn(socket)
    assert (event["status"], event["error"]["param"], event["error"]["code"]) == (status, param, code), event
    return event


def test_a_conversation_sends_only_what_is_new() -> None:
    world = World(Script(tokens=tuple(b"one")), Script(tokens=tuple(b"two")), context=400)
    with connected(world) as socket:
        first = ask(socket, instructions="Be.", store=False)
        second = ask(socket, input="and?", previous_response_id=first["id"], store=False)
    assert (text_of(first), text_of(second)) == ("one", "two")
    assert prompts(world) == ["<system>Be.<user>hi", "<user>hi<assistant>one<user>and?"]


def test_a_tool_loop() -> None:
    world = World(Script(tokens=tuple(CALL)), Script(tokens=tuple(b"It is 12.")), context=400)
    with connected(world) as socket:
        (call,) = calls_of(first := ask(socket, tools=[TOOL]))
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "12:00"}
        last = ask(socket, tools=[TOOL], previous_response_id=first["id"], input=[output])
    assert text_of(last) == "It is 12."
    assert prompts(world)[1] == "<user>hi<assistant><tool>12:00now"


def test_what_is_stored_is_found_from_elsewhere_and_what_is_not_only_here() -> None:
    world = World(context=400)
    over_http = post(world, headers=A).json()
    with connected(world) as socket:
        assert ask(socket, previous_response_id=over_http["id"])["status"] == "completed"
        stored, own = ask(socket), ask(socket, store=False)
        assert ask(socket, previous_response_id=own["id"])["status"] == "completed"
    with connected(world) as socket:
        assert ask(socket, previous_response_id=stored["id"])["status"] == "completed"
        send(socket, previous_response_id=own["id"])
        refused(socket, 400, "previous_response_id", "previous_response_not_found")
    assert post(world, headers=A, previous_response_id=stored["id"]).status_code == 200
    assert post(world, headers=A, previous_response_id=own["id"]).status_code == 400


def test_another_key_finds_nothing() -> None:  # H5
    world = World(context=400)
    mine = post(world, headers=A, input="my codeword is X").json()
    with connected(world, A) as first:
        own = ask(first, input="my codeword is Y", store=False)
        for headers in (B, {}):
            with connected(world, headers) as socket:
                for response_id in (mine["id"], own["id"]):
                    send(socket, previous_response_id=response_id)
                    event = refused(socket, 400, "previous_response_id", "previous_response_not_found")
                    assert "codeword" not in json.dumps(event)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("", None),
        ("{", None),
        ("[]", None),
        ('"\\ud83d"', None),
        ('{"type": "response.steer", "model": "m"}', "type"),
        ('{"model": "m", "input": "hi"}', "type"),
        ('{"type": "response.create", "input": "hi"}', "model"),
        ('{"type": "response.create", "model": "m", "input": 5}', "input"),
        ('{"type": "response.create", "model": "m", "input": "hi", "stream": false}', "stream"),
        ('{"type": "response.create", "model": "m", "input": "hi", "temperature": NaN}', None),
    ],
)
@pytest.mark.parametrize("binary", [False, True])
def test_a_message_that_is_no_request_is_an_error_event(message: str, param: str | None, binary: bool) -> None:
    with connected(World()) as socket:
        if binary:
            socket.send_bytes(message.encode())
        else:
            socket.send_text(message)
        refused(socket, 400, param)
        assert ask(socket)["status"] == "completed"


def test_a_refusal_says_when_to_come_again() -> None:
    world = World()
    with connected(world) as socket:
        world.generator.refuse = lambda request: RequestError(429, "full", retry_after=2)
        send(socket)
        event = refused(socket, 429, None, "rate_limit_exceeded")
        assert event["error"]["headers"]["retry-after"] == "2"
        assert event["error"]["headers"]["x-ratelimit-remaining-requests"] == "0"
        world.generator.refuse = lambda request: None
        assert ask(socket)["status"] == "completed"


def test_a_failure_in_the_middle_is_the_last_event() -> None:  # H3
    failing = Script(tokens=tuple(b"abc"), end="error", error="the engine failed")
    world = World(failing, Script(tokens=(65,), end="error"), Script())
    with connected(world) as socket:
        failed = ask(socket)
        assert (failed["status"], failed["error"]["message"]) == ("failed", "the engine failed")
        send(socket, previous_response_id=failed["id"])
        refused(socket, 400, "previous_response_id", "previous_response_not_found")
        send(socket)
        refused(socket, 500, None)
        assert ask(socket)["status"] == "completed"


def test_messages_are_answered_one_after_the_other() -> None:
    world = World(Script(tokens=tuple(b"one"), pause=0.01), Script(tokens=tuple(b"two")), context=400)
    with connected(world) as socket:
        send(socket, input="first")
        send(socket, input="second")
        assert [text_of(join_events(turn(socket))) for _ in range(2)] == ["one", "two"]
    assert prompts(world) == ["<user>first", "<user>second"]


def test_lanes_go_on_beside_each_other() -> None:
    world = World(Script(tokens=(120,), times=20, pause=0.02), Script(tokens=tuple(b"quick")), context=400)
    with connected(world) as socket:
        send(socket, stream_id="slow")
        send(socket, stream_id="quick")
        events: dict[str, list[Json]] = {"slow": [], "quick": []}
        ended = []
        while len(ended) < 2:
            event = checked_event(socket.receive_json())
            lane = event.pop("stream_id")
            events[lane].append(event)
            if event["type"] in ENDS:
                ended.append(lane)
        assert ended == ["quick", "slow"]
        joined = {lane: join_events(each) for lane, each in events.items()}
        assert (text_of(joined["slow"]), text_of(joined["quick"])) == ("x" * 20, "quick")
        send(socket, stream_id="quick", previous_response_id=joined["slow"]["id"], input="and?", store=False)
        assert {event["stream_id"] for event in turn(socket)} == {"quick"}
        socket.send_json({"type": "response.create", "stream_id": "odd", "model": "m", "input": 5})
        assert refused(socket, 400, "input")["stream_id"] == "odd"
    assert prompts(world)[2] == f"<user>hi<assistant>{'x' * 20}<user>and?"


def test_not_too_many_messages_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    with connected(World(Script(tokens=(), hang=True))) as socket:
        for _ in range(4):
            send(socket)
        refused(socket, 429, None, "rate_limit_exceeded")


def test_a_client_that_leaves_frees_its_rows() -> None:
    world = World(Script(tokens=(), hang=True))
    with connected(world) as socket:
        send(socket)
        send(socket, stream_id="other")
        end = time.monotonic() + 10
        while len(world.generator.running) < 2:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert len(world.generator.cancelled) == 2 and not world.generator.running


def test_the_connection_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 0.1)
    with connected(World(Script(tokens=(120,), times=10, pause=0.03), context=400)) as socket:
        send(socket)
        assert text_of(join_events(turn(socket))) == "x" * 10
        refused(socket, 400, None, "websocket_connection_limit_reached")
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1001


def test_after_the_limit_nothing_new_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 0.05)
    with connected(World(Script(tokens=(), hang=True))) as socket:
        send(socket)
        time.sleep(0.2)
        send(socket)
        refused(socket, 400, None, "websocket_connection_limit_reached")


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [((), False), (("http://localhost:3000",), False), (("http://page.example",), True), (("*",), True)],
)
def test_web_pages_connect_only_where_they_are_allowed_to(origins: tuple[str, ...], allowed: bool) -> None:
    world, page = World(settings=ServerSettings(cors_origins=origins)), {"origin": "http://page.example"}
    if allowed:
        with connected(world, page) as socket:
            assert ask(socket)["status"] == "completed"
        return
    with pytest.raises(WebSocketDenialResponse) as denied, connected(world, page):
        pass
    assert denied.value.status_code == 403 and "cors_origins" in denied.value.json()["error"]["message"]


def test_a_server_that_is_shutting_down_takes_nothing_new() -> None:
    world = World()
    with connected(world) as socket:
        world.app.state.drain.begin()
        send(socket)
        assert refused(socket, 503, None, "service_unavailable")["error"]["headers"]["retry-after"] == "1"
        with pytest.raises(WebSocketDenialResponse) as denied, connected(world):
            pass
        assert denied.value.status_code == 503


def test_the_speed_is_each_messages_own() -> None:
    with connected(World(context=400)) as socket:
        assert ask(socket, service_tier="fast")["headway"]["mode"] == "fast"
        assert ask(socket)["headway"]["mode"] == "standard"
    with connected(World(context=400), {"x-slo-tpot-ms": "25"}) as socket:
        assert ask(socket)["headway"]["pace"] == 40.0


def test_preparing() -> None:
    world = World(context=400)
    with connected(world) as socket:
        ready = ask(socket, generate=False, tools=[TOOL], store=False)
        assert ready["output"] == []
        ask(socket, input="go", tools=[TOOL], previous_response_id=ready["id"])
    assert prompts(world)[1] == "<user>hi<user>gonow"
