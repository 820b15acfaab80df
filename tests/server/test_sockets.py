from __future__ import annotations

import os
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from headway.errors import HeadwayError
from headway.server.sockets import base_url, bind, is_loopback


def close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True


def has_loopback6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


has_ipv6 = pytest.mark.skipif(not has_loopback6(), reason="needs IPv6")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "0.0.0.0", pytest.param("::1", marks=has_ipv6), pytest.param("::", marks=has_ipv6)]
)
def test_port_0_picks_one_that_answers(host: str) -> None:
    sockets = bind(host, 0)
    ports = {each.getsockname()[1] for each in sockets}
    assert len(ports) == 1
    assert connects(urlsplit(base_url(host, 1)).hostname or "", ports.pop())
    close(sockets)


@has_ipv6
def test_all_ipv6_addresses_means_ipv4_too() -> None:
    sockets = bind("::", 0)
    port = sockets[0].getsockname()[1]
    assert connects("127.0.0.1", port) and connects("::1", port)
    close(sockets)


def test_a_port_in_use_is_one_line() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(HeadwayError, match=f"port {port} on {host} is in use") as caught:
                bind(host, port)
            assert caught.value.exit_code == 1 and "\n" not in str(caught.value)


def test_a_second_server_can_not_take_the_port_while_the_first_loads() -> None:
    first = bind("127.0.0.1", 0)
    with pytest.raises(HeadwayError, match="in use"):
        bind("127.0.0.1", first[0].getsockname()[1])
    close(first)


def test_the_port_is_free_again_afterwards() -> None:
    first = bind("127.0.0.1", 0)
    port = first[0].getsockname()[1]
    connection = socket.create_connection(("127.0.0.1", port))
    accepted = socket.socket(fileno=os.dup(first[0].fileno()))
    accepted.setblocking(True)
    accepted.accept()[0].close()
    close([*first, accepted])
    close(bind("127.0.0.1", port))
    connection.close()


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("192.0.2.1", 8000, "192.0.2.1 is not an address of this machine"),
        ("no-such-host.invalid", 8000, "not a host name"),
        ("", -1, "port -1 is out of range"),
        ("127.0.0.1", 65536, "port 65536 is out of range"),
        ("exa mple", 8000, "not a host name"),
        ("x" * 100 + ".invalid", 8000, "not a host name"),
    ],
)
def test_what_can_not_be_bound_is_explained(host: str, port: int, words: str) -> None:
    with pytest.raises(HeadwayError, match=words):
        bind(host, port)


def test_a_port_that_needs_root_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(HeadwayError, match="this user may not listen on port 80"):
        bind("127.0.0.1", 80)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"), ("localhost", "http://localhost:80"), ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("fe80::1", "http://[fe80::1]:80"),
    ],
)  # fmt: skip
def test_the_url_can_be_followed(host: str, url: str) -> None:
    assert base_url(host, 80) == url


def test_only_loopback_is_loopback() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.0.1", "example.org", "", "fe80::1%eth0"))
