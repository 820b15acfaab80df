"""compose(requests, costs, now) -> Step: who rides in the next step, and how many prompt tokens come along.

The idea. Token k of a request is due at first token + k / pace. A step may last as long as its tightest rider allows.
Among requests that only decode, the ones with the highest pace p ride in every step and the others take turns, each in the
share pace / p of the steps: so everybody moves in proportion to what was promised, whatever the load, and a fast row's steps
are short because few others ride with it. A step is never made so small that it drops below `efficiency_floor` of the best
throughput on hand, unless a pace would break otherwise. Where the time allows more rows at no cost (a knee of the step-time
curve), they ride too. A chunk of the prompt whose first token is due soonest fills the time that is left. Drafts go to the
rows where they gain most; and since steps have one of a few sizes (see sizes.py), prompts and drafts fill what were padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.modes import ModeName
from headway.scheduler.blocks import BlockCopy
from headway.scheduler.cost import CostModel, Observation
from headway.scheduler.draft import allocate
from headway.scheduler.promises import HEADROOM
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes


@dataclass(frozen=True, slots=True)
class Limits:
    """max_step_tokens: tokens in one step at most.
    advantage: how much more than their proportional share the rows with the highest pace get, since the others also move while
    such a row waits for its first token.
    efficiency_floor: share of the best tokens/s on hand that a step keeps.
    reserve, reserve_standard: credit in tokens that a row keeps, so that a step that takes longer than predicted doesn't make
    it late. A standard row gets hardly any: between prompts and the pace of rows in full batches, throughput comes first.
    shortest, longest: bounds of a step in periods (1 / pace) of its tightest rider: a row without the reserve gains on it no
    quicker, one with credit waits no longer.
    min_chunk: prompt tokens that any step carries if a prompt is waiting.
    free_rows, knee: a step may grow by this share of its time for rows that a knee of the curve makes nearly free, if it
    then has this many times as many.
    granule: a step with a prompt's chunk gets a multiple of so many tokens, if it can: engines like sizes that they know.
    draft_gain: share by which drafts have to raise a step's expected tokens/s to make it larger.
    most_yield: tokens per step reckoned with at most for a row whose drafts come true.
    stay: steps over which the price of a new size is spread when drafts ask for it.
    headroom: share of the time that no promise may take."""

    max_step_tokens: int = 256
    advantage: float = 1.25
    efficiency_floor: float = 0.6
    reserve: float = 1.5
    reserve_standard: float = 0.1
    shortest: float = 0.7
    longest: float = 1.4
    min_chunk: int = 1
    free_rows: float = 0.01
    knee: float = 1.5
    granule: int = 32
    draft_gain: float = 0.1
    most_yield: float = 4.0
    stay: float = 3.0
    headroom: float = HEADROOM


@dataclass(frozen=True, slots=True)
class Row:
    """num_tokens to compute from `request.num_computed` on: pending ones, and after them `num_drafts` of the request's drafts.
    samples: the pending ones are all there, so the next token comes out (and one more for each draft that proves right)."""

    request: Request
    num_tokens: int
    samples: bool
    num_drafts: int = 0

    @property
    def num_samples(self) -> int:
        return self.num_drafts + self.samples


@dataclass(slots=True)
class Step:
    """One forward pass.

    size: tokens, with padding; needed: those of them that are not there only because there was room. changes: its size is
    another than the last step's. predicted: seconds. forced_by: the requests whose pace made the step smaller than the most
    efficient one, whose seconds per token would have been `efficient` (see charge.py). copies: to be made in this order before
    the step starts; set by the scheduler when it gives out the blocks.
    """

    rows: list[Row] = field(default_factory=list)
    size: int = 0
    needed: int = 0
    changes: bool = False
    predicted: float = 0.0
    forced_by: list[Request] = field(default_factory=list)
    efficient: float = 0.0
    copies: list[BlockCopy] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return sum(row.num_tokens for row in self.rows)

    @property
    def num_samples(self) -> int:
        return sum(row.num_samples for row in self.rows)

    def observed(self, seconds: float) -> Observation:
        """What the cost model can learn of the step, which took so long."""
        return Observation(self.size, self.context, self.num_samples, seconds, self.changes)

    @property
    def context(self) -> int:
        """Sum over the step's tokens of the positions each attends to (itself included)."""
        return sum(_context(row.request.num_computed, row.num_tokens) for row in self.rows)


def compose(requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
    """The next step over the admitted requests; without rows if none has anything to compute. Changes nothing."""
    decoding = [r for r in requests if r.pending == 1 and r.first_token_at is not None]
    prefilling = [r for r in requests if r.pending > 1 or (r.pending == 1 and r.first_token_at is None)]
    if not decoding:
        needed = min(sum(r.pending for r in prefilling), limits.max_step_tokens)
        return _finish(_chunks(prefilling, needed), needed, decoding, [], costs, sizes)

    context_each = sum(len(r.tokens) for r in decoding) / len(decoding)
    tightest = max(r.pace for r in decoding)
    always = [r for r in decoding if r.pace >= tightest]
    budget = min(_allowance(r, now, limits) for r in always)
    urgent, turns = _turn_order([r for r in decoding if r.pace < tightest], now + 2 * budget)

    # Rows that get several tokens a step need fewer steps, so there is time for more of the others in each.
    step_pace = tightest / min(limits.most_yield, *(r.tokens_per_step for r in always))
    num_others = _num_others(len(always), turns, step_pace, costs, context_each, limits)
    fitting = costs.tokens_within(budget, len(decoding), context_each=context_each, sampled=True) - len(always)
    # Whatever the fast rows need, somebody else moves on in every step: nobody starves.
    least = min(len(turns), max(1, num_others // 4))
    num_others = max(least, min(max(num_others, urgent), fitting))

    chunk = 0
    if prefilling:
        first = min(prefilling, key=lambda r: r.due)
        least = max(least, min(urgent, num_others))
        num_others, chunk = _share_with_prompt(len(always), num_others, least, first, costs, context_each, budget, now, limits)
    else:
        num_others = _fill_knee(len(always), num_others, len(turns), costs, context_each, limits)

    riders = always + turns[:num_others]
    needed = len(riders) + chunk
    if prefilling:
        chunk = min(sizes.fit(needed) - len(riders), sum(r.pending for r in prefilling))
    worth = _worth(len(always), num_others, len(turns), costs, context_each)

    def price(size: int, samples: int) -> float:
        # A chunk's tokens have contexts of their own; what a draft adds is the same with and without them. A new size mostly
        # stays for some steps: part of its price.
        change = costs.change / limits.stay if size != sizes.size else 0.0
        return costs.seconds(size, int(samples * context_each), samples) + change

    drafts = allocate(
        riders,
        len(always),
        worth,
        len(riders) + chunk,
        needed,
        budget,
        price,
        sizes,
        limits.max_step_tokens,
        limits.draft_gain,
    )
    rows = [Row(r, 1 + n, True, n) for r, n in zip(riders, drafts.counts, strict=True)]
    forced_by = always if len(riders) < len(decoding) else []
    return _finish(rows + _chunks(prefilling, chunk), drafts.needed, decoding, forced_by, costs, sizes)


def _allowance(r: Request, now: float, limits: Limits) -> float:
    """Seconds that a step with `r` in it may last."""
    period = min(r.tokens_per_step, limits.most_yield) / r.pace
    reserve = limits.reserve_standard if r.mode is ModeName.STANDARD else limits.reserve
    return max(limits.shortest * period, min(limits.longest * period, r.due - now - reserve / r.pace))


def _turn_order(others: Sequence[Request], horizon: float) -> tuple[int, list[Request]]:
    """The requests that take turns, and how many of them must ride: first those whose next token would be late if they missed
    this step (due before `horizon`, when the next step will have ended), by deadline; then by least service received."""
    must = sorted((r for r in others if r.due < horizon), key=lambda r: r.due)
    may = sorted((r for r in others if r.due >= horizon), key=lambda r: r.service)
    return len(must), must + may


def _num_others(
    num_always: int,
    turns: Sequence[Request],
    step_pace: float,
    costs: CostModel,
    context_each: float,
    limits: Limits,
) -> int:
    """How many of those who take turns ride: their fair share if there are `step_pace` steps a second, but at least what keeps
    the step efficient."""
    if not turns:
        return 0
    fair = int(sum(r.pace for r in turns) / step_pace / limits.advantage + 0.5)
    everyone = num_always + len(turns)

    def rate(n: int) -> float:
        return n / costs.seconds(n, int(n * context_each), n)

    wanted = limits.efficiency_floor * rate(everyone)
    low, high = max(1, min(fair, len(turns))), len(turns)
    while low < high:  # the rate rises with n, up to the knees
        middle = (low + high) // 2
        if rate(num_always + middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def _share_with_prompt(
    num_always: int,
    num_others: int,
    least: int,
    first: Request,
    costs: CostModel,
    context_each: float,
    budget: float,
    now: float,
    limits: Limits,
) -> tuple[int, int]:
    """Split the budget between those who take turns and the prompt that is due first: (others, prompt tokens). The prompt gets
    what it needs to be in time, then they; if the need can't be met it takes half of their places, then all but the least."""
    chunk = 0
    for others in (num_others, (num_others + least) // 2, least):
        rows = num_always + others
        taken = costs.seconds(rows, int(rows * context_each), rows)
        chunk = _chunk_within(rows, context_each, first, costs, budget, limits)
        steps_left = max(1.0, (first.due - now) / max(budget, taken))
        if chunk >= min(first.pending, first.pending / steps_left):
            return others, chunk
    return least, chunk


def _chunk_within(rows: int, context_each: float, first: Request, costs: CostModel, budget: float, limits: Limits) -> int:
    """Prompt tokens that fit into `budget` beside `rows` decoding rows."""
    room = limits.max_step_tokens - rows
    attended = costs.per_context * costs.drift
    spent = attended * rows * context_each + costs.per_sample * costs.drift * (rows + 1)
    each = first.num_computed + 0.5 * min(first.pending, room)
    fitting = costs.tokens_within(budget - spent + attended * rows * each, rows + room, context_each=each) - rows
    chunk = max(min(limits.min_chunk, room), min(fitting, room))
    even = (rows + chunk) // limits.granule * limits.granule - rows
    return even if even >= chunk // 2 and even > 0 else chunk


def _fill_knee(num_always: int, num_others: int, available: int, costs: CostModel, context_each: float, limits: Limits) -> int:
    """More rows if they are (nearly) free and many: a few would only take from the lead of the rows that always ride."""
    rows = num_always + num_others
    if num_others == available:
        return num_others
    taken = costs.seconds(rows, int(rows * context_each), rows)
    within = taken * (1.0 + limits.free_rows)
    fitting = costs.tokens_within(within, num_always + available, context_each=context_each, sampled=True)
    return fitting - num_always if fitting >= limits.knee * rows else num_others


def _worth(num_always: int, num_others: int, available: int, costs: CostModel, context_each: float) -> float:
    """What one more token for the rows that always ride is worth, in tokens: with it they need fewer steps, so that more of the
    others fit into each, and larger steps yield more tokens a second."""
    if num_others == available:
        return 1.0
    rows, more = num_always + num_others, num_always + min(available, 2 * num_others)
    taken = costs.seconds(rows, int(rows * context_each), rows)
    longer = costs.seconds(more, int(more * context_each), more)
    return max(1.0, (more / longer * taken / rows - 1.0) * rows / num_always)


def _chunks(prefilling: Sequence[Request], tokens: int) -> list[Row]:
    """Give `tokens` to the prompts, the one due first first."""
    rows: list[Row] = []
    for r in sorted(prefilling, key=lambda r: r.due):
        if tokens <= 0:
            break
        n = min(tokens, r.pending)
        rows.append(Row(r, n, n == r.pending))
        tokens -= n
    return rows


def _finish(
    rows: list[Row],
    needed: int,
    decoding: Sequence[Request],
    forced_by: Sequence[Request],
    costs: CostModel,
    sizes: StepSizes,
) -> Step:
    step = Step(rows)
    fit(step, needed, costs, sizes)
    if forced_by:
        n = len(decoding)
        step.forced_by = list(forced_by)
        step.efficient = costs.seconds(n, sum(len(r.tokens) for r in decoding), n) / n
    return step


def fit(step: Step, needed: int, costs: CostModel, sizes: StepSizes) -> None:
    """Set the size of a step by its rows, and what it should take."""
    if not step.rows:
        return
    step.needed = min(needed, step.num_tokens)
    step.size = max(sizes.fit(step.needed), sizes.fit(step.num_tokens))
    step.changes = step.size != sizes.size
    step.predicted = costs.seconds(step.size, step.context, step.num_samples) + step.changes * costs.change


def _context(start: int, n: int) -> int:
    return n * start + n * (n + 1) // 2
