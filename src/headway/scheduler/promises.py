"""What the machine can promise: how much of its time the paces of some requests take.

Rows with the highest pace p ride in every step, the others in the share pace / p of the steps (see compose.py), so p steps a
second of n = sum(pace) / p rows have to be done. What they leave of each second is for the prompts of those who come, and for
a machine that is slower than predicted; requests come in only as long as they leave enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from headway.scheduler.cost import CostModel
from headway.scheduler.request import MAX_SCORED, Request

HEADROOM = 0.05
"""Share of the time that no promise may take."""
GROWTH = 512
"""Tokens of output that a row's context is reckoned to grow by at most: few requests use up their max_tokens."""


@dataclass(frozen=True, slots=True)
class Paced:
    """What a promise depends on: pace in tokens/s, context in tokens."""

    pace: float
    context: float


@dataclass(frozen=True, slots=True)
class Demand:
    """Of some rows together. highest: of their paces; pace: their sum; context: sum of pace x context."""

    highest: float = 0.0
    pace: float = 0.0
    context: float = 0.0

    @staticmethod
    def of(rows: Iterable[Paced]) -> Demand:
        demand = Demand()
        for row in rows:
            demand = demand.plus(row)
        return demand

    @staticmethod
    def of_requests(requests: Iterable[Request]) -> Demand:
        """What `of` gives for the rows that `paced` makes of them, sooner."""
        highest = sum_of_paces = context = 0.0
        for r in requests:
            pace = r.pace
            if pace > highest:
                highest = pace
            sum_of_paces += pace
            context += pace * _context_of(r)
        return Demand(highest, sum_of_paces, context)

    def plus(self, row: Paced, times: int = 1) -> Demand:
        pace = times * row.pace
        return Demand(max(self.highest, row.pace), self.pace + pace, self.context + pace * row.context)


class Promises:
    """costs: asked each time, since it learns. max_step_tokens: tokens in one step at most. elsewhere: the share of the time
    that is promised to other models on the device."""

    elsewhere: Callable[[], float] = staticmethod(lambda: 0.0)

    def __init__(self, costs: CostModel, max_step_tokens: int, headroom: float = HEADROOM) -> None:
        self._costs = costs
        self._max_step_tokens = max_step_tokens
        self._headroom = headroom

    def hold(self, demand: Demand) -> bool:
        """Whether every pace holds with all these rows."""
        return self.share(demand) <= 1.0 - self._headroom - self.elsewhere()

    def share(self, demand: Demand) -> float:
        """The share of the machine's time that the paces of these rows take; above 1 they can't be kept."""
        highest = demand.highest
        if not highest:
            return 0.0
        shares = demand.pace / highest
        context = int(demand.context / highest)
        # Some steps have one rider more than others.
        fewer = int(shares)
        odd = shares - fewer
        more = self._costs.seconds(fewer + 1, context, fewer + 1) if odd else 0.0
        return highest * ((1.0 - odd) * self._costs.seconds(fewer, context, fewer) + odd * more)

    def most(self, row: Paced, beside: Collection[Paced] = ()) -> int:
        """How many such rows can be promised beside others."""
        others = Demand.of(beside)
        low, high = 0, self._max_step_tokens
        while low < high:
            middle = (low + high + 1) // 2
            if self.hold(others.plus(row, middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def first_token_in(self, request: Request, running: Collection[Request]) -> float:
        """Seconds until `request` should have its first token: its prompt and those due before it go in chunks through what the
        decoding rows leave of each step."""
        decoding = [paced(r) for r in running if r.first_token_at is not None]
        ahead = [r for r in running if r.first_token_at is None and r.prompt_order <= request.prompt_order]
        tokens = request.pending + sum(r.pending for r in ahead)
        each = len(request.tokens) / 2
        if not decoding:
            per_step = min(tokens, MAX_SCORED if request.to_score else self._max_step_tokens)
            scored = per_step if request.to_score else 0
            return tokens / per_step * self._costs.seconds(per_step, int(per_step * each), scored + 1)
        period = 1.0 / max(row.pace for row in decoding)
        riders = max(1, round(sum(row.pace for row in decoding) * period))
        room = self._costs.tokens_within(period * (1.0 - self._headroom), self._max_step_tokens, context_each=each)
        per_step = max(1, room - riders)
        return (1.0 + tokens / (min(per_step, MAX_SCORED) if request.to_score else per_step)) * period


def paced(request: Request) -> Paced:
    return Paced(request.pace, _context_of(request))


def _context_of(r: Request) -> float:
    """Tokens, on average over the output that is likely to come."""
    length = len(r.tokens)
    left = r.max_tokens + r.num_prompt - length
    return length + (left if left < GROWTH else GROWTH) / 2
