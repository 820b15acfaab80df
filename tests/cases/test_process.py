"""HTTP and the process.

Reports: colibri 1589, llama.cpp 9210 (bad text in the body); llama.cpp 6544, vllm 4862 (preflight); kserve 5446,
llm-d 1564 (idle connections closed); llama.cpp 26822, Rapid-MLX 905, vllm 22816 (port in use, IPv6); uvicorn 116
(pipelining).
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from server.live import live

from cases.client import CHAT, COMPLETIONS, Client, Reply, exchange, wait_for
from cases.process import ServerProcess, serve

pytestmark = pytest.mark.model

PAUSE_SECONDS = 30.0
LONG: dict[str, Any] = {"max_tokens": 4000, "ignore_eos": True, "stream": True}


@pytest.fixture(scope="module", autouse=True)
def after_a_pause(server: Client) -> Iterator[Future[Reply]]:
    """The second answer on a connection that lay idle for a while, during which the other tests of this file run."""
    with closing(server.connect()) as connection, ThreadPoolExecutor(1) as pool:
        assert exchange(connection, "POST", CHAT, server.chat(max_tokens=1)).status == 200

        def ask_again() -> Reply:
            time.sleep(PAUSE_SECONDS)
            return exchange(connection, "GET", "/health")

        yield pool.submit(ask_again)


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")


@pytest.fixture(scope="module")
def configured(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on all addresses, for a page, with little patience at its end."""
    config = tmp_path_factory.mktemp("configured") / "headway.toml"
    config.write_text('[server]\ncors_origins = ["http://localhost:3000"]\ngrace_s = 5\n')
    process = serve(smollm2, "--config", str(config), "--host", "::" if has_ipv6() else "0.0.0.0", "--allow-without-key")
    try:
        yield process
    finally:
        process.close()


def body_with(text: bytes, model: bytes) -> bytes:
    return b'{"model": "' + model + b'", "max_tokens": 2, "messages": [{"role": "user", "content": "' + text + b'"}]}'


def test_bad_text_never_breaks_it(server: Client) -> None:
    model = server.model.encode()
    good = body_with(b"hi", model)
    refused = [
        body_with(b"x \\ud83d", model),
        body_with(b"\\ude00 y", model),
        body_with(b"\xff", model),
        body_with(b"\xed\xa0\xbd\xed\xb8\x80", model),
        body_with(b"\xf0\x9f\xab", model),
        body_with(b"hi", b"\\ud83d"),
        body_with(b"\n", model),
        good.decode().encode("utf-16"),
        good.decode().encode("utf-32"),
        good[:-1],
        good + b"x",
        b"",
        b"[]",
        b'{"a":',
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ]
    for raw in refused:
        reply = server.post(CHAT, raw)
        assert reply.status == 400, raw[:80]
        assert reply.error["type"] == "invalid_request_error"
    accepted = [
        b"\xef\xbb\xbf" + good,
        body_with(b"a\\u0000b", model),
        body_with(b"\\ud83e\\udee0", model),
        body_with("🫠".encode(), model),
        body_with(b"<|im_end|>", model),
        good[:-1] + b', "max_tokens": 1}',
    ]
    for raw in accepted:
        assert server.post(CHAT, raw, {"content-type": "text/plain"}).status == 200, raw


def test_without_configured_origins_no_page_may_read(server: Client) -> None:
    origin = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    for reply in (server.send("OPTIONS", CHAT, None, origin), server.get("/v1/models", origin)):
        assert not [name for name in reply.headers if name.startswith("access-control")]


def test_configured_origins_are_served_even_errors(configured: ServerProcess) -> None:
    client = configured.client()
    asked = "authorization,content-type,x-api-key,anthropic-version"
    origin = {"Origin": "http://localhost:3000"}
    preflight = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked}
    reply = client.send("OPTIONS", CHAT, None, preflight)
    assert reply.status == 200
    assert set(asked.split(",")) <= set(reply.headers["access-control-allow-headers"].replace(" ", "").split(","))
    for body in (client.chat(max_tokens=1), {}):
        reply = client.post(CHAT, body, origin)
        assert reply.headers["access-control-allow-origin"] == "http://localhost:3000"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def fails(*args: str) -> str:
    """The one line with which `headway serve` gives up, before it has loaded anything."""
    process = ServerProcess("smollm2", *args)
    try:
        assert process.wait(60) != 0
        assert len(process.lines) == 1, process.log
        return process.lines[0]
    finally:
        process.close()


def test_a_port_in_use_is_said_in_one_line(smollm2: Path, taken: int) -> None:
    assert "in use" in fails("--port", str(taken))


def test_an_address_of_another_machine(smollm2: Path) -> None:
    assert "not an address of this machine" in fails("--host", "192.0.2.1", "--port", "0")
    assert "not a host name" in fails("--host", "no-such-host.invalid", "--port", "0")


def test_all_addresses_are_served_and_the_url_works(configured: ServerProcess) -> None:
    client = configured.client()
    assert client.get("/health").status == 200
    assert ("[::1]" in client.url) == has_ipv6()
    assert Client(f"http://127.0.0.1:{client.port}", "").get("/health").status == 200


@pytest.mark.parametrize("host", [pytest.param("::1", marks=needs_ipv6), "localhost"])
def test_other_hosts_are_served_and_their_url_works(host: str) -> None:
    with live({}, host=host) as (_, client):
        assert client.get("/health").status == 200
        assert (host == "::1") == ("[::1]" in client.url)
        if host == "localhost":
            assert Client(f"http://127.0.0.1:{client.port}", "").get("/health").status == 200


def test_pipelined_requests_are_answered_in_order(server: Client) -> None:
    body = json.dumps(server.chat(max_tokens=5, stream=True)).encode()
    with server.socket() as connection:
        connection.sendall(
            b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (CHAT.encode(), len(body), body)
            + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        data = b""
        while piece := connection.recv(65536):
            data += piece
    order = [data.index(mark) for mark in (b"data: [DONE]", b'"status"', b'"object":"list"')]
    assert order == sorted(order) and data.count(b"HTTP/1.1 200 OK") == 3


def test_odd_requests_are_refused(server: Client) -> None:
    both = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    for raw in (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", both):
        with server.socket() as connection:
            connection.sendall(raw)
            assert connection.recv(12).startswith(b"HTTP/1.1 4")


def rows(client: Client) -> float:
    return client.metric("headway_rows", mode="standard") + client.metric("headway_rows", mode="fast")


def test_a_killed_client_frees_its_row(server: Client) -> None:
    wait_for(lambda: rows(server) == 0)
    code = "import sys, urllib.request as u; [0 for _ in u.urlopen(u.Request(sys.argv[1], sys.stdin.buffer.read()))]"
    client = subprocess.Popen([sys.executable, "-c", code, server.url + CHAT], stdin=subprocess.PIPE)
    assert client.stdin is not None
    client.stdin.write(json.dumps(server.chat("Tell me a story.", **LONG)).encode())
    client.stdin.close()
    wait_for(lambda: rows(server) == 1)
    client.send_signal(signal.SIGKILL)
    client.wait()
    wait_for(lambda: rows(server) == 0)


def test_closed_streams_are_counted_and_free_their_blocks(server: Client) -> None:
    wait_for(lambda: rows(server) == 0)
    cancelled = server.metric("headway_requests_total", mode="standard", outcome="cancelled")
    used = server.metric("headway_kv_blocks", state="used")
    for _ in range(5):
        with server.open_stream(CHAT, server.chat("Tell me a story.", **LONG)) as events:
            next(events)
    wait_for(lambda: rows(server) == 0)
    assert server.metric("headway_requests_total", mode="standard", outcome="cancelled") == cancelled + 5
    assert server.metric("headway_kv_blocks", state="used") <= max(used, 0)


def test_a_stop_under_load_ends_every_stream_well(configured: ServerProcess) -> None:
    client = configured.client()
    short = client.chat("Say hi.", max_tokens=8)
    long = client.chat("Tell me a story.", **LONG)
    with ThreadPoolExecutor(12) as pool:
        streams = [pool.submit(client.stream, CHAT, body) for body in [short] * 4 + [long] * 8]
        wait_for(lambda: rows(client) >= 8)
        configured.process.terminate()
        ends = [stream.result()[-1] for stream in streams]
    assert configured.wait() == 0, configured.log
    finished = [end for end in ends if "error" not in end]
    told = [end["error"] for end in ends if "error" in end]
    assert len(finished) >= 4 and all(end["choices"][0]["finish_reason"] for end in finished)
    assert told and all("shutting down" in error["message"] for error in told)
    assert "Traceback" not in configured.log


def test_long_texts_are_refused_while_others_go_on(server: Client) -> None:
    """Tokenizing what nearly fits must not hold up the event loop."""
    with ThreadPoolExecutor(4) as pool:
        long = [pool.submit(server.post, COMPLETIONS, server.completion("word " * 80_000)) for _ in range(4)]
        assert server.get("/health").status == 200
        assert {each.result().status for each in long} == {400}


def test_a_pooled_connection_outlives_a_pause(after_a_pause: Future[Reply]) -> None:
    """The last test here: most of the pause is over. http.client would raise if the server had closed the connection."""
    assert after_a_pause.result().status == 200
