"""Counting against limits, in this process or in a store that several servers share. The `limits` library does it.

Its fixed windows are used: a minute begins with the first request and everything is back at its end, so a wait that is told is
true; a counter is one number however large the limit, and can be given back to. (Its moving window keeps an entry for every
token.) The price is that two minutes' worth can be had around a minute's end; what the machine can't take, admission refuses
anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from limits import RateLimitItemPerMinute
from limits.errors import ConfigurationError
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from headway.access.allowance import Kind, Window
from headway.errors import UsageError
from headway.modes import ModeName

Result = TypeVar("Result")
MINUTE = 60.0
STORAGE_SECONDS = 1.0
"""How long a shared store may take to answer."""
TTL_ERROR = 0.5
"""Redis tells a window's end in whole seconds, rounded."""


@dataclass(frozen=True, slots=True)
class Account:
    """Of one caller at one mode. limits: a minute's, by kind."""

    counted_as: str
    mode: ModeName
    limits: Mapping[Kind, int]

    def item(self, kind: Kind) -> RateLimitItemPerMinute:
        return RateLimitItemPerMinute(self.limits[kind], namespace="headway")

    def key(self, kind: Kind) -> str:
        return self.item(kind).key_for(self.counted_as, self.mode, kind)


@dataclass(frozen=True, slots=True)
class Taking:
    """refused: what there was too little of; None if all was taken. windows: what is left."""

    refused: Kind | None
    windows: Mapping[Kind, Window]
    at: float


class Counter:
    """One store: "memory", or the URL of a Redis or Valkey. Its methods raise the library's StorageError. Raises UsageError if
    the store can't be used at all."""

    def __init__(self, url: str) -> None:
        self._storage = MemoryStorage() if url == "memory" else _connect(url)
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._is_shared = url != "memory"

    async def take(self, account: Account, amounts: Mapping[Kind, int]) -> Taking:
        """All or nothing."""
        return await self._run(lambda: self._take(account, amounts))

    async def look(self, account: Account) -> Mapping[Kind, Window]:
        return await self._run(lambda: self._windows(account))

    async def give_back(self, account: Account, taking: Taking, amounts: Mapping[Kind, int]) -> None:
        """What is from a minute that is over is not given back to the next."""
        await self._run(lambda: self._give_back(account, taking, amounts))

    async def _run(self, work: Callable[[], Result]) -> Result:
        """In a thread where the library's call waits for another machine."""
        return await asyncio.to_thread(work) if self._is_shared else work()

    def _take(self, account: Account, amounts: Mapping[Kind, int]) -> Taking:
        refused = next((kind for kind in account.limits if not self._fits(account, kind, amounts[kind])), None)
        if refused is None:
            refused = self._hit(account, amounts)
        return Taking(refused, self._windows(account), time.time())

    def _fits(self, account: Account, kind: Kind, amount: int) -> bool:
        return self._limiter.test(account.item(kind), account.counted_as, account.mode, kind, cost=amount)

    def _hit(self, account: Account, amounts: Mapping[Kind, int]) -> Kind | None:
        """Returns what another server has taken since it was looked at."""
        taken: list[Kind] = []
        for kind in account.limits:
            taken.append(kind)
            if not self._limiter.hit(account.item(kind), account.counted_as, account.mode, kind, cost=amounts[kind]):
                for each in taken:  # the library counts what it refuses, too
                    self._storage.incr(account.key(each), int(MINUTE), amount=-amounts[each])
                return kind
        return None

    def _windows(self, account: Account) -> dict[Kind, Window]:
        now, windows = time.time(), {}
        for kind, limit in account.limits.items():
            stats = self._limiter.get_window_stats(account.item(kind), account.counted_as, account.mode, kind)
            reset = stats.reset_time - now
            if self._is_shared and reset > 0:
                reset += TTL_ERROR
            windows[kind] = Window(limit, stats.remaining, min(MINUTE, max(0.0, reset)))
        return windows

    def _give_back(self, account: Account, taking: Taking, amounts: Mapping[Kind, int]) -> None:
        for kind, amount in amounts.items():
            same_minute = time.time() < taking.at + taking.windows[kind].reset
            if same_minute and self._storage.get(account.key(kind)) >= amount:
                self._storage.incr(account.key(kind), int(MINUTE), amount=-amount)


def _connect(url: str) -> Storage:
    options: dict[str, float | str | bool] = {"socket_timeout": STORAGE_SECONDS, "socket_connect_timeout": STORAGE_SECONDS}
    scheme = url.partition("://")[0]
    try:
        return cast(Storage, storage_from_string(url, wrap_exceptions=True, **options))
    except ConfigurationError:
        raise UsageError(f"limits.storage is {scheme}://..., which needs a package: pip install 'headway[redis]'") from None
    except ValueError as error:
        raise UsageError(f"limits.storage, {scheme}://..., can't be used: {error}") from None
