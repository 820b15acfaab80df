"""API keys: how they are made, and whose request it is that carries one.

A key is 256 random bits, so its SHA-256 can't be turned round by guessing, and headway.toml holds nothing that could be used.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers

from headway.config import KeySettings, Settings
from headway.errors import RequestError, UsageError
from headway.modes import ModeName

PREFIX = "hw-"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is. name: of the key, "" without one. share: what fairness and drafts take for one and the same caller:
    the name, else what came in place of a key, else the address. counted_as: what limits do: the name, else the address.
    modes: those that the key may ask for."""

    name: str
    share: str
    counted_as: str
    modes: tuple[str, ...] = tuple(ModeName)

    def check_mode(self, mode: ModeName) -> None:
        """Raises RequestError 403, but not for fast: a key without it is told what one is whose fast limit is 0."""
        if mode not in self.modes and mode is not ModeName.FAST:
            raise RequestError(403, f"The key {self.name} may not ask for {mode}, only for {', '.join(self.modes)}.")


def new_key() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """As it stands in headway.toml."""
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


class Keyring:
    """The configured keys. required: whether a request needs one of them."""

    def __init__(self, keys: Mapping[str, KeySettings], *, required: bool) -> None:
        self._callers = [(settings.hash.encode(), Caller(name, name, name, settings.modes)) for name, settings in keys.items()]
        self.required = required

    def caller(self, headers: Headers, address: str) -> Caller:
        """Raises RequestError 401. Where no key is required, an unknown one (SDKs always send something) is nobody's."""
        presented = _presented(headers)
        for secret in presented:
            if (known := self._find(secret)) is not None:
                return known
        if self.required:
            raise RequestError(401, _problem(headers, presented), code="invalid_api_key")
        if presented:
            return Caller("", hashlib.blake2b(presented[0].encode(), digest_size=8).hexdigest(), address)
        return Caller("", address, address)

    def _find(self, secret: str) -> Caller | None:
        """Looks at every key, and at the whole of it, so that the time says nothing."""
        digest, found = hash_of(secret).encode(), None
        for known, caller in self._callers:
            if hmac.compare_digest(known, digest):
                found = caller
        return found


def keyring(settings: Settings, *, loopback: bool) -> Keyring:
    """A key is required as soon as there are any. loopback: whether only this machine reaches the server; if not, there have to
    be keys. `server.allow_without_key` lifts both. Raises UsageError."""
    if settings.server.allow_without_key:
        return Keyring(settings.keys, required=False)
    if not loopback and not settings.keys:
        raise UsageError(
            f"other machines reach {settings.server.host}, and there are no keys: make one with `headway key new --write`, "
            "or give --allow-without-key to serve whoever comes"
        )
    return Keyring(settings.keys, required=bool(settings.keys))


def _presented(headers: Headers) -> list[str]:
    """What `x-api-key` and `authorization: Bearer` hold: clients of Anthropic's API may send both."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return [secret for secret in (headers.get("x-api-key", "").strip(), bearer) if secret]


def _problem(headers: Headers, presented: list[str]) -> str:
    if presented:
        return "This API key is not known here."
    if "authorization" in headers:
        return "The authorization header holds no key; it has to read `Bearer YOUR_KEY`."
    return "No API key was sent; send one as `authorization: Bearer YOUR_KEY` or `x-api-key: YOUR_KEY`."
