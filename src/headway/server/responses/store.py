"""Responses that can be gone on from, and read again."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import to_json

from headway.server.prompt import Begun
from headway.server.responses.items import Item


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """response: the body that was answered. input: all items it was made from, those of earlier responses too, so that each
    can be gone on from whatever has become of the ones before."""

    response: dict[str, Any]
    input: tuple[Item, ...]

    @property
    def id(self) -> str:
        response_id: str = self.response["id"]
        return response_id

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation up to its end."""
        return (*self.input, *self.response["output"])

    def size(self) -> int:
        """Bytes, as JSON."""
        return len(to_json(self.response)) + len(to_json(self.input))


class ResponseStore(Protocol):
    """What belongs to one key doesn't exist for any other."""

    async def put(self, key: str, stored: StoredResponse) -> None: ...

    async def get(self, key: str, response_id: str) -> StoredResponse | None: ...

    async def delete(self, key: str, response_id: str) -> bool:
        """Whether there was one."""


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: StoredResponse
    size: int
    until: float


class MemoryStore:
    """For as long as the process lives. seconds: how long each is kept. max_bytes: of all together; when they are more, the
    oldest go of the key that has most, so that nobody's are lost to another's. clock: seconds."""

    def __init__(self, max_bytes: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()  # oldest first
        self._sizes: Counter[str] = Counter()

    async def put(self, key: str, stored: StoredResponse) -> None:
        self._drop_expired()
        entry = _Entry(stored, stored.size(), self._clock() + self._seconds)
        self._drop(key, stored.id)
        self._entries[key, stored.id] = entry
        self._sizes[key] += entry.size
        while self._sizes.total() > self._max_bytes:
            ((most, _),) = self._sizes.most_common(1)
            self._drop(*next(each for each in self._entries if each[0] == most))

    async def get(self, key: str, response_id: str) -> StoredResponse | None:
        self._drop_expired()
        entry = self._entries.get((key, response_id))
        return entry.stored if entry is not None else None

    async def delete(self, key: str, response_id: str) -> bool:
        self._drop_expired()
        return self._drop(key, response_id)

    def forget(self, key: str, stored: StoredResponse) -> None:
        """This very one, which is kept elsewhere now."""
        entry = self._entries.get((key, stored.id))
        if entry is not None and entry.stored is stored:
            self._drop(key, stored.id)

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._entries:
            (key, response_id), entry = next(iter(self._entries.items()))
            if entry.until > now:
                return
            self._drop(key, response_id)

    def _drop(self, key: str, response_id: str) -> bool:
        entry = self._entries.pop((key, response_id), None)
        if entry is None:
            return False
        self._sizes[key] -= entry.size
        if not self._sizes[key]:
            del self._sizes[key]
        return True


class Recent:
    """The last responses of one connection, those too that aren't to be stored, each with what is known of its prompt, the
    latest first."""

    MOST = 16

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[StoredResponse, tuple[Begun, ...]]] = OrderedDict()

    def put(self, stored: StoredResponse, known: tuple[Begun, ...]) -> None:
        self._kept[stored.id] = stored, known
        if len(self._kept) > self.MOST:
            self._kept.popitem(last=False)

    def get(self, response_id: str) -> tuple[StoredResponse, tuple[Begun, ...]] | None:
        return self._kept.get(response_id)
