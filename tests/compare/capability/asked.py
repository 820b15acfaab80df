"""A target without an endpoint, for what asks targets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from headway.compare.record import RequestRecord
from headway.compare.target import Answer, Ask, Price
from headway.modes import ModeName


@dataclass
class Oracle:
    """Answers with what `words` makes of a prompt, or fails where that is None. at_once: how many it was asked at the same
    time, at most."""

    words: Callable[[str], str | None]
    label: str = "oracle"
    price: Price | None = None
    seconds: float = 0.0
    asked: list[str] = field(default_factory=list)
    at_once: int = 0
    _now: int = 0

    async def ask(self, ask: Ask) -> Answer:
        prompt = str(ask.messages[-1]["content"])
        self.asked.append(prompt)
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        await asyncio.sleep(self.seconds)
        self._now -= 1
        said = self.words(prompt)
        record = RequestRecord(ModeName.STANDARD, 0.0, 0.0, chunk_times=[0.5, 1.0], finished=1.0)
        if said is None:
            record.fail("HTTP 500: made to fail")
        else:
            record.outcome, record.prompt_tokens, record.output_tokens = "success", 100, 10
        return Answer(record, said or "")
