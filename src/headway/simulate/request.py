"""A request whose tokens are made up: all that matters of them is which of them are the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from headway.modes import Mode
from headway.scheduler.lookup import MAX_DRAFTS
from headway.scheduler.request import Request
from headway.simulate.trace import Arrival

STOP = -1
_FIRST_SHARED = -2


@dataclass(slots=True, eq=False)
class SimulatedRequest(Request):
    """drafts_per_step: guesses to be verified in each step on average; acceptance: the chance that one proves right. then,
    think: see Arrival.

    token: stands for every token that is this request's alone, so that no other prompt shares it; sampled: what a step
    without drafts gives it. length: output tokens after which it ends."""

    token: int = 0
    length: int = 0
    sampled: list[int] = field(default_factory=list)
    drafts_per_step: float = inf
    acceptance: float = 0.0
    then: Arrival | None = None
    think: float = 0.0

    def guess(self) -> None:
        """As many drafts as may be, wherever it decodes and there haven't been enough; whether they prove right is drawn when
        they are verified."""
        decodes = self.pending == 1 and self.first_token_at is not None
        if self.drafted.total() >= self.drafts_per_step * (self.num_output - self.accepted.total()):
            decodes = False
        self.drafts = [self.token] * min(MAX_DRAFTS, self.max_tokens - self.num_output - 1) if decodes else []


def from_arrival(arrival: Arrival, number: int, mode: Mode, highest_pace: float) -> SimulatedRequest:
    """number: of no other request. A pace of the arrival's own holds, up to the highest there is, unless it was downgraded."""
    pace = mode.pace
    if arrival.pace is not None and arrival.mode == mode.name:
        pace = min(arrival.pace, highest_pace)
    length = arrival.output_tokens
    max_tokens = length if arrival.max_tokens is None else max(length, arrival.max_tokens)
    tokens = _shared(arrival) if arrival.prefix else []
    tokens += [number] * (arrival.prompt_tokens - len(tokens))
    return SimulatedRequest(
        str(number),
        mode.name,
        pace,
        arrival.at,
        arrival.at + mode.ttft_target,
        tokens,
        max_tokens,
        frozenset((STOP,)) if max_tokens > length else frozenset(),
        token=number,
        length=length,
        key=arrival.key or "",
        sampled=[number],
        then=arrival.then,
        think=arrival.think,
    )


def _shared(arrival: Arrival) -> list[int]:
    tokens = [_FIRST_SHARED - block for block in arrival.prefix for _ in range(arrival.prefix_tokens)]
    return tokens[: arrival.prompt_tokens]
