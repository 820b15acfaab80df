"""Listening sockets, opened before the model is loaded, so that a wrong host or port shows at once."""

from __future__ import annotations

import errno
import ipaddress
import socket

from headway.errors import HeadwayError, UsageError

BACKLOG = 2048


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that already listen: connections made while the model loads wait, and no other server can take the port.

    host: an address, or a name such as localhost, which may stand for several addresses (IPv6 first). `::` takes IPv4 too.
    port: 0 picks a free one, the same for all addresses. Raises HeadwayError with one line that says what to do.
    """
    if not 0 <= port <= 65535:
        raise UsageError(f"port {port} is out of range; give one from 1 to 65535, or 0 for a free one")
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, address in _resolve(host):
        try:
            sockets.append(_listen(family, address, port))
        except OSError as exc:
            if exc.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):  # a name may stand for a family that is switched off
                _close(sockets)
                raise _explain(exc, host, port) from None
            failure = exc
            continue
        port = port or sockets[0].getsockname()[1]
    if not sockets:
        assert failure is not None
        raise _explain(failure, host, port) from None
    return sockets


def _resolve(host: str) -> list[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise HeadwayError(f"{host!r} is not a host name or address that this machine knows; try --host 127.0.0.1") from None
    addresses = dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found)
    return sorted(addresses, key=lambda each: each[0] != socket.AF_INET6)


def _listen(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
        listener.bind((address, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _explain(exc: OSError, host: str, port: int) -> HeadwayError:
    reasons = {
        errno.EADDRINUSE: f"port {port} on {host} is in use; give another --port, or 0 for a free one",
        errno.EACCES: f"this user may not listen on port {port}; give a --port of 1024 or above",
        errno.EADDRNOTAVAIL: f"{host} is not an address of this machine; try --host 127.0.0.1",
        errno.EAFNOSUPPORT: f"this machine has no network of the kind of {host}; try --host 127.0.0.1",
    }
    return HeadwayError(reasons.get(exc.errno or 0, f"can't listen on {host} port {port}: {exc.strerror or exc}"))


def _close(sockets: list[socket.socket]) -> None:
    for listener in sockets:
        listener.close()


def base_url(host: str, port: int) -> str:
    """A link that can be followed on this machine: IPv6 in brackets, the loopback address for "all addresses"."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`. A name other than localhost counts as reachable from outside."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
