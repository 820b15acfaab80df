"""What needs a socket: clients that leave, the server's end, HTTP itself. The generator is scripted."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cases import messages, responses
from cases.client import CHAT, COMPLETIONS, Client, exchange, wait_for

from .live import live

ENDLESS = {"tokens": [120], "times": 50_000, "pause": 0.01}
HANGING = {"tokens": [], "hang": True}


@pytest.fixture(scope="module")
def endless() -> Iterator[Client]:
    """Streams that go on for minutes."""
    with live(ENDLESS) as (_, client):
        yield client


@pytest.fixture(scope="module")
def hanging() -> Iterator[Client]:
    """Requests that wait in the queue for ever."""
    with live(HANGING) as (_, client):
        yield client


@pytest.fixture(scope="module")
def quick() -> Iterator[Client]:
    with live({"tokens": list(b"quick")}, max_body_mb=1) as (_, client):
        yield client


def rows(client: Client) -> float:
    return client.metric("headway_rows", mode="standard")


def raw_request(client: Client, body: dict[str, Any], path: str = CHAT) -> bytes:
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(data), data)


def long_chat(client: Client, **fields: Any) -> dict[str, Any]:
    return client.chat("hi", max_tokens=50_000, **fields)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("n", [1, 3])
def test_a_client_that_closes_frees_its_rows(endless: Client, stream: bool, n: int) -> None:
    with endless.socket() as connection:
        connection.sendall(raw_request(endless, long_chat(endless, stream=stream, n=n)))
        wait_for(lambda: rows(endless) == n)
        if stream:
            assert connection.recv(100)
    wait_for(lambda: rows(endless) == 0)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_while_waiting_frees_its_place(hanging: Client, stream: bool) -> None:
    with hanging.socket() as connection:
        connection.sendall(raw_request(hanging, long_chat(hanging, stream=stream)))
        wait_for(lambda: rows(hanging) == 1)
    wait_for(lambda: rows(hanging) == 0)


def test_a_killed_client_frees_its_row(endless: Client) -> None:
    code = (
        "import socket, sys\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "s.sendall(sys.stdin.buffer.read())\n"
        "while s.recv(65536): pass\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code, endless.host, str(endless.port)], stdin=subprocess.PIPE)
    assert client.stdin is not None
    client.stdin.write(raw_request(endless, long_chat(endless, stream=True)))
    client.stdin.close()
    wait_for(lambda: rows(endless) == 1)
    client.kill()
    client.wait()
    wait_for(lambda: rows(endless) == 0)


def test_a_client_that_reads_nothing_and_leaves_frees_its_row() -> None:
    with live({"tokens": [120], "times": 50_000}) as (_, client):
        connection = client.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(raw_request(client, long_chat(client, stream=True, ignore_eos=True)))
        time.sleep(1)
        assert client.get("/health").status == 200
        connection.close()
        wait_for(lambda: rows(client) == 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_requests_finish_after_a_signal(number: signal.Signals) -> None:
    with live({"tokens": [120], "times": 60, "pause": 0.02}, grace_s=30) as (process, client):
        kept = client.connect()
        assert exchange(kept, "GET", "/health").status == 200
        with client.open_stream(CHAT, client.chat("hi", max_tokens=60)) as events:
            chunks = [next(events)]
            process.send_signal(number)
            wait_for(lambda: refuses_connections(client))
            refused = exchange(kept, "POST", CHAT, client.chat())
            assert (
                refused.status == 503 and refused.headers["connection"] == "close" and refused.error["type"] == "server_error"
            )
            chunks += events
        assert chunks[-1]["choices"][0]["finish_reason"] == "length"
        assert process.wait(20) == 0
        assert process.stdout is not None and process.stdout.read() == "ended\n"


def refuses_connections(client: Client) -> bool:
    try:
        client.socket().close()
    except ConnectionRefusedError:
        return True
    return False


def test_named_events_end_with_one_that_tells_of_the_end() -> None:  # H3
    with live(ENDLESS, grace_s=0.5) as (process, client):
        message = {**messages.body(client, "hi"), "max_tokens": 50_000}
        response = {**responses.body(client, "hi"), "max_output_tokens": 50_000}
        with messages.open_events(client, message) as sent, responses.open_events(client, response) as told:
            kinds = [[next(sent)["type"]], [next(told)["type"]]]
            process.terminate()
            for kind, events in zip(kinds, (sent, told), strict=True):
                kind += [event["type"] for event in events]
        assert kinds[0][-1] == "error" and not {"message_delta", "message_stop"} & set(kinds[0])
        assert kinds[1][-1] == "response.failed"
        assert not {"response.completed", "response.incomplete"} & set(kinds[1]) and kinds[1].count("response.failed") == 1
        assert process.wait(20) == 0


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_what_still_runs_after_the_grace_is_told(path: str) -> None:
    with live(ENDLESS, grace_s=0.5) as (process, client):
        body = client.chat("hi", max_tokens=50_000) if path == CHAT else client.completion("hi", max_tokens=50_000)
        whole = client.connect()
        whole.request("POST", path, json.dumps(body))
        with client.open_stream(path, body) as events:
            chunks = [next(events)]
            process.terminate()
            chunks += events
        assert chunks[-1]["error"]["type"] == "server_error" and "shutting down" in chunks[-1]["error"]["message"]
        response = whole.getresponse()
        assert response.status == 503 and b"shutting down" in response.read()
        assert process.wait(20) == 0


def test_waiting_requests_are_told_too() -> None:
    with live(HANGING, grace_s=0.2) as (process, client):
        connection = client.connect()
        connection.request("POST", CHAT, json.dumps({**client.chat(), "stream": True}))
        wait_for(lambda: rows(client) == 1)
        process.terminate()
        assert connection.getresponse().status == 503
        assert process.wait(20) == 0


def test_a_client_that_reads_nothing_does_not_hold_up_the_end() -> None:
    with live({"tokens": [120], "times": 50_000}, grace_s=0.2) as (process, client), client.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(raw_request(client, long_chat(client, stream=True)))
        time.sleep(1)
        process.terminate()
        assert process.wait(20) == 0


def test_a_second_signal_ends_it_at_once() -> None:
    with live(HANGING, grace_s=1000) as (process, client), client.socket() as connection:
        connection.sendall(raw_request(client, long_chat(client)))
        wait_for(lambda: rows(client) == 1)
        process.terminate()
        wait_for(lambda: refuses_connections(client))
        process.terminate()
        assert process.wait(10) == 128 + signal.SIGTERM


def read_all(connection: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data


def test_pipelined_requests_are_answered_in_order(quick: Client) -> None:
    with quick.socket() as connection:
        connection.sendall(
            raw_request(quick, quick.chat(stream=True))
            + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
            + raw_request(quick, quick.completion("x"), COMPLETIONS)
            + b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        data = read_all(connection)
    order = [data.index(mark) for mark in (b"data: [DONE]", b'{"status":"ok"}', b'"text_completion"', b'"object":"list"')]
    assert order == sorted(order) and data.count(b"HTTP/1.1 200 OK") == 4


HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "statuses"),
    [
        (HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n", {431}),
        (HEAD + b"X: " + b"y" * 70_000, {431}),
        (HEAD + b"X: " + b"y" * 1_000_000, {431}),
        (HEAD + b"X: y\r\n" * 20_000 + b"\r\n", {431}),
        (b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\n\r\n", {431, 400}),
        (b"GET /" + b"y" * 1_000_000, {431}),
        (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", {400}),
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
        (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", {400}),
        (POST + b"Content-Length: -5\r\n\r\nhello", {400}),
        (POST + b"Content-Length: 5x\r\n\r\nhello", {400}),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", {400}),
        (POST + b"Content-Length: 1000001\r\n\r\n", {413}),
        (POST + b"Content-Length: 9" + b"9" * 15 + b"\r\n\r\n", {413}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, {400}),
        (b"garbage\r\n\r\n", {400}),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else "",
)
def test_bad_http_gets_a_client_error_in_json(quick: Client, request_bytes: bytes, statuses: set[int]) -> None:
    with quick.socket() as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(request_bytes)
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status in statuses
        assert set(json.loads(response.read())) == {"error"}
    assert quick.get("/health").status == 200


def test_a_header_of_reasonable_size_is_taken(quick: Client) -> None:
    assert quick.get("/health", {"X": "y" * 50_000}).status == 200


def test_a_body_that_is_too_large_leaves_the_connection_usable(quick: Client) -> None:
    connection = quick.connect()
    for body in (b"x" * 20_000_000, b'{"model": "m", "prompt": "' + b"x" * 1_000_000 + b'"}'):
        reply = exchange(connection, "POST", CHAT, body)
        assert reply.status == 413 and "1 MB" in reply.error["message"]
    assert exchange(connection, "POST", CHAT, quick.chat()).status == 200
    connection.request("POST", CHAT, iter([b"x" * 100_000] * 50), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    response = connection.getresponse()
    assert response.status == 413
    response.read()
    connection.close()


def test_a_body_may_come_in_chunks_and_after_a_100(quick: Client) -> None:
    connection = quick.connect()
    body = json.dumps(quick.chat()).encode()
    pieces = iter([body[:5], body[5:]])
    connection.request("POST", CHAT, pieces, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    assert connection.getresponse().status == 200
    with quick.socket() as connection:
        connection.sendall(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("ended", [b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v1/chat"])
def test_a_client_that_asks_for_more_before_its_answer_and_leaves_frees_its_row(endless: Client, ended: bytes) -> None:
    with endless.socket() as connection:
        connection.sendall(raw_request(endless, long_chat(endless)) + ended)
        wait_for(lambda: rows(endless) == 1)
    wait_for(lambda: rows(endless) == 0)


def test_a_client_that_leaves_in_the_middle_of_its_body_does_no_harm(quick: Client) -> None:
    for sent in (POST, POST + b"Content-Length: 100\r\n\r\n{"):
        with quick.socket() as connection:
            connection.sendall(sent)
    assert quick.ok(CHAT, quick.chat())
    assert rows(quick) == 0


def test_a_stream_is_chunked_and_not_cached(quick: Client) -> None:
    reply = quick.post(CHAT, quick.chat(stream=True))
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache"
    assert "content-length" not in reply.headers and "x-request-id" in reply.headers


def test_each_token_is_sent_when_it_comes(endless: Client) -> None:
    with endless.open_stream(CHAT, long_chat(endless)) as events:
        for _ in range(20):
            next(events)
    wait_for(lambda: rows(endless) == 0)
