"""Goodput: the requests per second that were served as well as was wanted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.compare.record import RequestRecord
from headway.compare.stats import itl
from headway.errors import UsageError

NAMES = ("ttft", "tpot", "itl", "e2el")
_OBJECTIVE = re.compile(r"(ttft|tpot|itl|e2el?):([0-9.eE+-]+)(?:ms)?")


def is_objective(text: str) -> bool:
    return re.match(r"(ttft|tpot|itl|e2el?):", text) is not None


@dataclass(frozen=True, slots=True)
class Objective:
    """name: one of NAMES; e2el is the latency end to end. seconds: the most it may be. itl: the mean gap of a request's own."""

    name: str
    seconds: float

    def is_met(self, record: RequestRecord) -> bool:
        """A request of one token has no TPOT and no gaps, and nothing there to complain about."""
        gaps = itl(record)
        values = {
            "ttft": record.ttft,
            "tpot": record.tpot,
            "itl": sum(gaps) / len(gaps) if gaps else None,
            "e2el": record.e2e,
        }
        value = values[self.name]
        return value is None or value <= self.seconds


def parse_objectives(texts: Iterable[str]) -> tuple[Objective, ...]:
    """From `ttft:500`, `tpot:30` (milliseconds), several in a text if set apart by spaces or commas. Raises UsageError."""
    found = []
    for text in (word for words in texts for word in re.split(r"[\s,]+", words.strip()) if word):
        match = _OBJECTIVE.fullmatch(text)
        try:
            milliseconds = float(match[2]) if match else 0.0
        except ValueError:
            milliseconds = 0.0
        if match is None or not (milliseconds > 0 and math.isfinite(milliseconds)):
            raise UsageError(
                f"--goodput: {text!r} should be NAME:MILLISECONDS, such as ttft:500, with one of {', '.join(NAMES)}"
            )
        found.append(Objective("e2el" if match[1] == "e2e" else match[1], milliseconds / 1000))
    return tuple(found)


def is_good(record: RequestRecord, objectives: Sequence[Objective]) -> bool:
    return record.succeeded and all(objective.is_met(record) for objective in objectives)
