"""Requests of one mode that wait for a seat."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from itertools import chain

from headway.scheduler.request import Request

PROMPT_WEIGHT, OUTPUT_WEIGHT = 1.0, 2.0
"""What a token counts for its key, as in arXiv 2401.00588."""
MAX_KEYS = 10_000
"""Keys that are remembered while nothing of theirs waits or runs."""


class Queue:
    """Those of different keys take turns by what their keys have been served (virtual token counters, arXiv 2401.00588), those
    of one key in order of arrival; so nobody gets more by sending more at once."""

    def __init__(self) -> None:
        self._by_key: dict[str, deque[Request]] = {}
        self._served: dict[str, float] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def __iter__(self) -> Iterator[Request]:
        return chain.from_iterable(self._by_key.values())

    def arrive(self, key: str, active: Collection[str]) -> None:
        """A request of `key` comes; active: the keys with running ones. A key that was away has no claim on the time before it
        came back: it starts level with the least served of those who are here."""
        if key in self._by_key or key in active:
            return
        here = [self._served.get(other, 0.0) for other in {*self._by_key, *active}]
        self._served[key] = max(self._served.get(key, 0.0), min(here, default=0.0))
        if len(self._served) > MAX_KEYS:
            self._served = {k: v for k, v in self._served.items() if k in self._by_key or k in active or k == key}

    def push(self, request: Request) -> None:
        self._by_key.setdefault(request.key, deque()).append(request)
        self._waiting += 1

    def first(self) -> Request | None:
        """The one to be seated next: of the least served key, the earliest."""
        if not self._by_key:
            return None
        key = min(self._by_key, key=lambda k: (self._served.get(k, 0.0), self._by_key[k][0].arrival))
        return self._by_key[key][0]

    def remove(self, request: Request) -> None:
        waiting = self._by_key[request.key]
        waiting.remove(request)
        self._waiting -= 1
        if not waiting:
            del self._by_key[request.key]

    def serve(self, key: str, prompt: int = 0, output: int = 0) -> None:
        """Count tokens for a key."""
        self._served[key] = self._served.get(key, 0.0) + PROMPT_WEIGHT * prompt + OUTPUT_WEIGHT * output
