"""A target at an endpoint, whichever API that speaks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from headway.compare.client import Client
from headway.compare.record import RequestRecord
from headway.compare.request import StreamRequest
from headway.compare.target import Answer, Ask, Price
from headway.compare.targets.dialect import Dialect, Manner
from headway.errors import HeadwayError
from headway.modes import ModeName

BUSY = (429, 503, 529)
"""Statuses that say "later"."""
REFUSED = (400, 422)
UNAUTHORIZED = (401, 403)
FAST_WORDS = ("fast", "priority")
HELLO = ({"role": "user", "content": "Hello"},)
PROBE_TOKENS = 2
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Patience:
    """What is done when a target says "later": it is asked again up to `retries` times, after the seconds that it names (the
    header `retry-after`), else after `first_wait`, twice that, and so on. It is given up at once if it asks for more than
    `longest_wait` seconds, or says that there is no use."""

    retries: int = 5
    longest_wait: float = 60.0
    first_wait: float = 1.0

    def wait_before(self, retry: int, record: RequestRecord) -> float | None:
        """Seconds to wait before the retry of this number (from 1) of a refused request; None: give up."""
        if record.status not in BUSY or record.gives_up or retry > self.retries:
            return None
        wait = self.first_wait * 2 ** (retry - 1) if record.retry_after is None else record.retry_after
        return None if wait > self.longest_wait else wait


OF_A_SCHEMA = frozenset({"response_format", "output_config"})
"""Fields that hold an answer to a schema."""


@dataclass(slots=True)
class EndpointTarget:
    """Fulfils Target, and Sender[Ask] for the loads.

    client: with the headers that the dialect wants. path: of the requests. variant: see Manner. mode: what its records say that
    was asked for. secret: is kept out of all that is reported. left_out: fields that it has refused, and does without since.
    unheld: questions whose schema it refused to be held to; they were asked without.
    find_model: tells the model where that is the server's to tell; `probe` asks it.
    """

    label: str
    client: Client
    dialect: Dialect
    path: str
    model: str | None
    variant: str | None = None
    mode: ModeName = ModeName.STANDARD
    price: Price | None = None
    patience: Patience = Patience()
    secret: str | None = None
    left_out: set[str] = field(default_factory=set)
    unheld: int = 0
    find_model: Callable[[], Awaitable[str]] | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def record(self, request: Ask, intended: float | None = None) -> RequestRecord:
        now = self.client.clock()
        return RequestRecord(self.mode, now if intended is None else intended, now)

    async def ask(self, ask: Ask) -> Answer:
        return await self.send(ask, self.record(ask))

    async def send(self, request: Ask, record: RequestRecord) -> Answer:
        """Ask, and fill the record. A field that the endpoint refuses is left out from now on (`left_out`; a schema of this
        question alone, `unheld`), and a target that is busy is asked again as `patience` says."""
        without = set(self.left_out)
        while True:
            answer = await self._send_once(request, record, without)
            if record.succeeded or record.chunk_times:
                return answer
            if not self._does_without(request, record, without):
                wait = self.patience.wait_before(record.retries + 1, record)
                if wait is None:
                    return answer
                record.retries += 1
                await self.sleep(wait)
            record.begin_again(self.client.clock())

    async def probe(self) -> RequestRecord:
        """A short request, to learn what the endpoint takes, and to warm it up. Raises HeadwayError if it can't be measured,
        with what to do about it if the key or the model is wrong."""
        if self.model is None and self.find_model is not None:
            self.model = await self.find_model()
        answer = await self.ask(Ask(HELLO, PROBE_TOKENS, ignore_eos=True))
        record = answer.record
        if record.succeeded:
            return record
        if record.status in UNAUTHORIZED:
            raise HeadwayError(f"{self.label}: the API key is refused ({record.reason})")
        if record.status == 404:
            place = self.client.url + self.path
            raise HeadwayError(f"{self.label}: no model {self.model!r} at {place}, or nothing there ({record.reason})")
        raise HeadwayError(f"{self.label} can't be measured: {record.reason}")

    def served_as_asked(self, record: RequestRecord) -> bool | None:
        """Whether the API says that it served the tier or speed that was asked for; None if none was, or if it doesn't say."""
        said = record.service_tier
        if record.served_by is not None and record.served_by.mode is not None and self.mode is not ModeName.SPARK:
            return record.served_by.mode == self.mode
        if self.variant is None or said is None:
            return None
        return said == self.variant or (said in FAST_WORDS and self.variant in FAST_WORDS)

    async def _send_once(self, request: Ask, record: RequestRecord, without: Collection[str]) -> Answer:
        body = self.dialect.body(request, Manner(self.model or "", self.variant, without))
        reader = self.dialect.reader(record)
        await self.client.send(StreamRequest(self.mode, self.path, body), record, reader)
        if record.reason is not None and self.secret:
            record.reason = record.reason.replace(self.secret, _HIDDEN)
        return Answer(record, record.text, reader.calls)

    def _does_without(self, request: Ask, record: RequestRecord, without: set[str]) -> bool:
        """Whether the refusal names a field that can be left out, and hasn't been yet; if it names none, it is blamed on the
        one that few know."""
        if record.status not in REFUSED:
            return False
        named = [name for name in self.dialect.optional if re.search(rf"\b{name}\b", record.reason or "")]
        if not named and request.ignore_eos:
            named = ["ignore_eos"]
        fresh = next((name for name in named if name not in without), None)
        if fresh is None:
            return False
        without.add(fresh)
        if fresh in OF_A_SCHEMA:  # another question's may be taken
            self.unheld += 1
        else:
            self.left_out.add(fresh)
        return True
