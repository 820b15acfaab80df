"""What a key may have of a mode in a minute: taken when a request starts, settled when it ends.

Output is taken as `max_tokens`; what the request didn't use of it is given back, if the minute it was taken from still runs.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from limits.errors import StorageError

from headway.access.allowance import Allowance, Kind, OverLimit, Window
from headway.access.counter import MINUTE, Account, Counter, Taking
from headway.access.keys import Caller
from headway.modes import ModeName

log = logging.getLogger("headway.access")
RETRY_SECONDS = 5.0
"""How long a shared store is left alone after it has failed."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What a request has taken, to be settled once."""

    account: Account
    amounts: Mapping[Kind, int]
    taking: Taking
    counter: Counter = field(repr=False)


class Quota:
    """The limits of all callers. storage: as Counter takes it. num_held: holds yet to be settled. Raises UsageError."""

    def __init__(self, allowance: Allowance, storage: str) -> None:
        self.num_held = 0
        self._allowance = allowance
        self._local = Counter("memory")
        self._shared = Counter(storage) if storage != "memory" else None
        self._shared_again_at = 0.0
        self._failing = False

    async def take(self, caller: Caller, mode: ModeName, needs: Mapping[Kind, int]) -> Hold | None:
        """For a request that needs so much at the most; None if nothing is limited. Raises OverLimit."""
        account = Account(caller.counted_as, mode, self._allowance.limits(caller.name, mode))
        if not account.limits:
            return None
        who = f"The key {caller.name}" if caller.name else "A caller without a key"
        for kind, limit in account.limits.items():
            if limit == 0 or (kind is Kind.INPUT and needs[kind] > limit):
                raise await self._hopeless(who, caller, account, kind, needs[kind])
        # A cap above the limit takes the whole minute: it says what the answer may have, not what it needs.
        amounts = {kind: min(needs[kind], limit) for kind, limit in account.limits.items()}
        counter, taking = await self._ask(account, amounts)
        if taking.refused is not None:
            raise _over(who, account, taking.windows, taking.refused, amounts[taking.refused])
        self.num_held += 1
        return Hold(account, amounts, taking, counter)

    async def settle(self, hold: Hold, used: Mapping[Kind, int]) -> None:
        """The request has ended, having used so much of these kinds: the rest of them is given back."""
        self.num_held -= 1
        back = {kind: hold.amounts[kind] - amount for kind, amount in used.items() if hold.amounts.get(kind, 0) > amount}
        try:
            await hold.counter.give_back(hold.account, hold.taking, back)
        except StorageError as error:
            self._leave_alone(error)

    async def _ask(self, account: Account, amounts: Mapping[Kind, int]) -> tuple[Counter, Taking]:
        if self._shared is not None and time.monotonic() >= self._shared_again_at:
            try:
                taking = await self._shared.take(account, amounts)
            except StorageError as error:
                self._leave_alone(error)
            else:
                self._failing = False
                return self._shared, taking
        return self._local, await self._local.take(account, amounts)

    def _leave_alone(self, error: StorageError) -> None:
        self._shared_again_at = time.monotonic() + RETRY_SECONDS
        if not self._failing:
            self._failing = True
            log.warning("limits are counted in this process alone for now; their store fails: %s", error.storage_error)

    async def _hopeless(self, who: str, caller: Caller, account: Account, kind: Kind, needed: int) -> OverLimit:
        limit, windows = account.limits[kind], await self._local.look(account)
        if account.mode not in caller.modes:
            message = f"{who} may not ask for {account.mode}, only for {', '.join(caller.modes)}."
        elif limit == 0:
            message = f"{who} may not have {account.mode}: its limit of {kind.words} is 0."
        else:
            message = f"{who} may have {limit} {kind.words} a minute at {account.mode}; this request alone has {needed}."
        return OverLimit(message, MINUTE, kind, windows, hopeless=True)


def _over(who: str, account: Account, windows: Mapping[Kind, Window], kind: Kind, amount: int) -> OverLimit:
    window = windows[kind]
    message = f"{who} may have {window.limit} {kind.words} a minute at {account.mode} and has {window.remaining} left"
    asks = "" if kind is Kind.REQUESTS else f", this request asks for {amount}"
    return OverLimit(f"{message}{asks}; try again in {max(1, math.ceil(window.reset))} s.", window.reset, kind, windows)
