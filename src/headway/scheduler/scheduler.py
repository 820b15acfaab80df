"""The scheduler: requests in, steps out. Pure Python; the engine loop and the simulator drive the same code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from headway.modes import ModeName, Modes
from headway.scheduler.admission import Admission
from headway.scheduler.blocks import BlockCopy, BlockPool
from headway.scheduler.charge import charge
from headway.scheduler.compose import compose
from headway.scheduler.cost import CostModel
from headway.scheduler.foreseen import Foreseen, Trust
from headway.scheduler.limits import Limits
from headway.scheduler.lookup import DraftSource
from headway.scheduler.phrases import PhraseBooks
from headway.scheduler.promises import Demand, Promises
from headway.scheduler.request import Request
from headway.scheduler.sharing import Pressing
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, Step, catching_up, fit

Composer = Callable[[Sequence[Request], CostModel, StepSizes, float, Limits], Step]
"""Who rides in the next step: `compose`, or another policy to compare it with."""


MAX_FORESEEN = 4
"""Rows that ride in every step up to which the draft head is asked: with more, steps are so long that guesses don't pay."""


@dataclass(slots=True, eq=False)
class Received:
    """A request got its first `num_tokens` sampled tokens of this step; `ended` says why the last of them ends it, if so."""

    request: Request
    num_tokens: int
    ended: str | None


class Scheduler:
    """Not thread-safe: the engine loop's thread owns it.

    The cycle: `add` and `cancel` at any time between steps; `plan(now)` gives a step whose rows have their blocks; make its
    copies and run it; `complete(step, tokens, now, seconds)` with the sampled tokens of each row that samples (one, and another
    for each draft that proved right), in row order.
    """

    def __init__(
        self,
        modes: Modes,
        pool: BlockPool,
        costs: CostModel,
        limits: Limits,
        *,
        speculation: bool = True,
        composer: Composer = compose,
    ) -> None:
        self.pool = pool
        self.costs = costs
        self.limits = limits
        self.speculation = speculation
        self.sizes = StepSizes(costs)
        self.promises = Promises(costs, limits.max_step_tokens, limits.headroom)
        self._admission = Admission(modes, self.promises, self._have_room)
        self.composer = composer
        self.num_evicted = 0
        self._phrases = PhraseBooks()
        self._trust = Trust()
        self._new: list[Request] = []  # seated since the last plan
        self._predicted = costs.seconds(1, 0, 1)  # of the last step

    def add(self, request: Request, now: float) -> None:
        """Seat or queue a request. Raises Refused, or ValueError for one that could never fit into the pool."""
        if not self._have_room([request]):
            raise ValueError(f"request {request.id} needs more blocks than there are")
        if self.speculation:
            request.lookup.phrases = self._phrases.of(request.key)
        if self._admission.admit(request, now):
            self._new.append(request)

    def cancel(self, request_id: str) -> Request | None:
        """Forget a request and free what it held; None if it isn't here (any more)."""
        request = self._admission.leave(request_id)
        if request is not None:
            self._free(request)
        return request

    def running(self) -> list[Request]:
        return self._admission.running()

    @property
    def newcomers(self) -> int:
        """Requests seated since the last plan."""
        return len(self._new)

    def note_served(self, request: Request, tokens: int) -> None:
        """Output tokens count for the request's key, which then waits the longer."""
        self._admission.seats[request.mode].waiting.serve(request.key, output=tokens)

    def count(self, mode: ModeName) -> tuple[int, int]:
        """(running, waiting) requests of a mode."""
        seats = self._admission.seats[mode]
        return len(seats.running), len(seats.waiting)

    def pressing(self) -> Pressing | None:
        """What there is to do, for a choice between models; None if there is nothing."""
        running = self.running()
        waiting = [first for seats in self._admission.seats.values() if (first := seats.waiting.first()) is not None]
        dues = [r.due if r.first_token_at is None else r.due - self.limits.lead / r.pace for r in running]
        dues += [r.due for r in waiting]
        newcomer = any(r.first_token_at is None for r in running)
        return Pressing(min(dues), self._predicted, newcomer) if dues else None

    def share(self) -> float:
        """Of the device's time, that is promised to those who are here."""
        return self.promises.share(Demand.of_requests(self.running()))

    def plan(self, now: float, until: float = math.inf) -> Step | None:
        """The next step, which should have ended at `until` for another model's sake; None if there is nothing to do."""
        for request in (*self._new, *self._admission.board()):
            self._level(request)
        self._new.clear()
        running = self.running()
        if self.speculation:
            for request in running:
                request.guess()
        limits = self.limits if until == math.inf else replace(self.limits, until=until)
        step = self.composer(running, self.costs, self.sizes, now, limits)
        if not step.rows:
            return None
        planned = step.rows
        copies: dict[str, BlockCopy] = {}
        step.rows = self._give_blocks(planned, copies) or self._give_blocks([self._first_in_rank()], copies)
        step.copies = list(copies.values())
        for row in step.rows:
            if row.request.started_at is None:
                row.request.started_at = now
        if step.rows != planned:
            fit(step, self.costs, self.sizes)
            step.forced_by = [r for r in step.forced_by if r in {row.request for row in step.rows}]
        self.sizes.take(step.needed, step.size)
        self._predicted = step.predicted
        return step

    def complete(self, step: Step, tokens: Sequence[Sequence[int]], now: float, seconds: float) -> list[Received]:
        """Take the results of a step that took `seconds` of device time and ended at `now`. Requests that ended are freed;
        those cancelled since the step was planned are charged for it and get nothing. The first token of one that is `held` is
        not to be handed out before its next one."""
        self.costs.observe(step.observed(seconds))
        charge(step, seconds)
        sampled = iter(tokens)
        seats = self._admission.seats
        received: list[Received] = []
        first: list[Request] = []
        for row in step.rows:
            request = row.request
            tokens_of_row = next(sampled) if row.samples else ()
            if request.id not in seats[request.mode].running:
                continue
            took = self._advance(row, tokens_of_row, now)
            if row.samples:
                received.append(took)
                if request.first_token_at == now and not took.ended and request.num_output == took.num_tokens:
                    first.append(request)
            if took.ended:
                if request.lookup.phrases is not None:
                    request.lookup.phrases.learn(request.tokens, request.num_output)
                self.cancel(request.id)
        for request in first:
            request.held = self._should_wait(request, now)
        return received

    def worth_foreseeing(self, received: Sequence[Received]) -> list[Received]:
        """Of those who have just got tokens, the ones for whom guesses of a draft head or model pay: who ride in every step,
        are so few that their steps have room for drafts, and can't look up well what comes next."""
        if not self.speculation:
            return []
        decoding = [r for r in self.running() if r.first_token_at is not None]
        tightest = max((r.pace for r in decoding), default=0.0)
        if sum(r.pace >= tightest for r in decoding) > MAX_FORESEEN:
            return []
        on = [r for r in received if r.ended is None and r.request.pace >= tightest]
        return [r for r in on if r.request.num_output + 1 < r.request.max_tokens and not r.request.knows_on()]

    def foresee(self, request: Request, tokens: Sequence[int], likelihoods: Sequence[float], source: DraftSource) -> None:
        """A draft head or model guesses that `request` will go on with `tokens`."""
        request.foreseen = Foreseen(len(request.tokens), tokens, likelihoods, self._trust, source)

    def _advance(self, row: Row, tokens: Sequence[int], now: float) -> Received:
        """Enter a row's results: what was computed, and the tokens up to the one that ends the request, if one does."""
        request = row.request
        request.learn(tokens)
        ended = None
        taken = 0
        stops, most = request.stop_tokens, request.num_prompt + request.max_tokens
        for token in tokens:
            request.receive(token, now)
            taken += 1
            if token in stops or len(request.tokens) >= most:
                ended = self._why_ended(request, token)
                if ended:
                    break
        if taken == len(tokens) and request.guide is not None and request.guide.finished:
            ended = "stop"
        # Drafts that proved wrong, or came after the end, leave nothing behind: their places count as not computed.
        num_right = taken - 1 if taken else 0
        request.num_computed += row.num_tokens - row.num_drafts + num_right
        request.num_scored += row.num_scored
        if row.num_drafts:
            request.note_drafts(row.num_drafts, num_right)
        if taken:
            self._admission.seats[request.mode].waiting.serve(request.key, output=taken)
        if request.num_computed >= (request.num_sealed + 1) * self.pool.block_size:
            self.seal(request)
        return Received(request, taken, ended)

    def _should_wait(self, request: Request, now: float) -> bool:
        """Whether the first token is to be held until the next one is there. Not where that might make it miss its deadline."""
        period = 1.0 / request.pace
        if now <= request.ttft_deadline < now + period:
            return False
        waiting = min(sum([r.reach for r in self.running()]), self.limits.max_step_tokens)
        return self.costs.seconds(waiting) > self.limits.hold * period

    def _first_in_rank(self) -> Row:
        """A row for the request that may evict all others: where memory is short, it at least goes on."""
        request = max(self.running(), key=_rank)
        return catching_up(request, min(request.reach, self.limits.max_step_tokens))

    def _why_ended(self, request: Request, token: int) -> str | None:
        if request.is_last(token):
            return "stop"
        return "length" if request.num_output >= request.max_tokens else None

    def _level(self, request: Request) -> None:
        """A newcomer starts level with the least served of those who are here: no claim on the time before it came."""
        request.level = request.service = min([r.service for r in self.running() if r is not request], default=0.0)

    def _have_room(self, requests: Sequence[Request]) -> bool:
        return sum(self._blocks_for(r.num_prompt + r.max_tokens) for r in requests) <= self.pool.num_blocks

    def _give_blocks(self, rows: Iterable[Row], copies: dict[str, BlockCopy]) -> list[Row]:
        """Blocks for every row, in order; where the pool is empty the least privileged request is evicted, or the row waits.
        What a row's first own block gets from the prefix cache goes to `copies`, by request id.

        A copy's source may be handed out again in the same plan, even as its own destination. That is right nevertheless: only
        sealed blocks are sources, and no block of this plan is sealed before the step has ended, so that a source can only be
        overwritten by a copy planned after its own or by the step, both of which come later.
        """
        kept: list[Row] = []
        evicted: set[str] = set()
        size = self.pool.block_size
        for row in rows:
            request = row.request
            if evicted and request.id in evicted:
                continue
            if request.blocks and request.num_computed + row.num_tokens <= len(request.blocks) * size:
                kept.append(row)
                continue
            head = None
            if request.num_computed == 0 and not request.blocks:
                row, head = self._from_cache(row)
            need = self._blocks_for(request.num_computed + row.num_tokens) - len(request.blocks)
            if row.num_drafts and need > self.pool.num_free:  # a guess is not worth an eviction
                row = Row(request, row.num_tokens - row.num_drafts, row.samples)
                need = self._blocks_for(request.num_computed + row.num_tokens) - len(request.blocks)
            while need > self.pool.num_free:
                victim = self._victim(request)
                if victim is None:
                    break
                self._evict(victim)
                evicted.add(victim.id)
                copies.pop(victim.id, None)
                kept = [k for k in kept if k.request is not victim]
            blocks = self.pool.allocate(need) if need > 0 else []
            if blocks is None:
                if head:
                    self._free(request)  # the copy that it counts as computed is not made
                continue
            request.blocks += blocks
            if head:
                copies[request.id] = BlockCopy(head[0], request.blocks[request.num_sealed], head[1])
            kept.append(row)
        return kept

    def _from_cache(self, row: Row) -> tuple[Row, tuple[int, int] | None]:
        """Start a request on what the prefix cache has of it: whole blocks, and the block to copy the beginning of its next one
        from, with the number of tokens (counted as computed already)."""
        request = row.request
        # What is to be scored has to be computed, the last of these tokens, as always, too.
        usable = request.tokens[: request.num_scored + 1] if request.to_score else request.tokens
        request.blocks, request.prefix_key = self.pool.match(usable)
        request.num_sealed = len(request.blocks)
        request.num_computed = request.num_sealed * self.pool.block_size
        head = self.pool.match_head(request.prefix_key, usable[request.num_computed :])
        if head:
            request.num_computed += head[1]
        if request.first_token_at is None:
            request.num_cached = request.num_computed
        if not request.num_computed:
            return row, None
        return catching_up(request, min(row.num_tokens, request.reach)), head

    def _victim(self, wanting: Request) -> Request | None:
        """The request to evict for `wanting`: of the lowest pace, the latest to come; never one that is before it."""
        holders = [r for r in self.running() if r.blocks and r is not wanting and _rank(r) < _rank(wanting)]
        return min(holders, key=_rank, default=None)

    def _evict(self, request: Request) -> None:
        """Take the blocks; it keeps its seat and computes its tokens again later (most come back from the prefix cache)."""
        self._free(request)
        self.num_evicted += 1

    def _free(self, request: Request) -> None:
        self.pool.release(request.blocks)
        request.blocks = []
        request.num_computed = 0
        request.num_sealed = 0
        request.prefix_key = BlockPool.ROOT

    def seal(self, request: Request) -> None:
        """Let the prefix cache know the blocks that the request has filled."""
        size = self.pool.block_size
        at = request.num_sealed
        while (at + 1) * size <= request.num_computed:
            tokens = request.tokens[at * size : (at + 1) * size]
            request.prefix_key = self.pool.seal(request.blocks[at], request.prefix_key, tokens)
            request.num_sealed = at = at + 1

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.pool.block_size)


def _rank(r: Request) -> tuple[float, float, str]:
    """Who keeps the memory when it is short: the higher pace, then the earlier arrival."""
    return (r.pace, -r.arrival, r.id)
