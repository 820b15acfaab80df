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

from headway.modes import ModeName
from headway.scheduler.chunks import chunks, more_prompt, prompts_alone, share_with_prompt
from headway.scheduler.cost import CostModel
from headway.scheduler.draft import allocate
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, Step, fit


def compose(requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
    """The next step over the admitted requests; without rows if none has anything to compute. Changes nothing."""
    decoding = [r for r in requests if r.pending == 1 and r.first_token_at is not None]
    prefilling = [r for r in requests if r.pending > 1 or (r.pending == 1 and r.first_token_at is None)]
    if not decoding:
        needed = prompts_alone(prefilling, costs, limits)
        return _finish(chunks(prefilling, needed), needed, decoding, [], costs, sizes)

    context_each = sum(len(r.tokens) for r in decoding) / len(decoding)
    tightest = max(r.pace for r in decoding)
    always = [r for r in decoding if r.pace >= tightest]
    budget = min(_allowance(r, now, limits) for r in always)
    urgent, turns = _turn_order([r for r in decoding if r.pace < tightest], now + 2 * budget, limits.lead)

    # Rows that get several tokens a step need fewer steps, so there is time for more of the others in each.
    step_pace = tightest / min(limits.most_yield, *(r.tokens_per_step for r in always))
    num_others = _num_others(len(always), turns, step_pace, costs, context_each, limits)
    fitting = costs.tokens_within(budget, len(decoding), context_each=context_each, sampled=True) - len(always)
    # Whatever the fast rows need, somebody else moves on in every step: nobody starves.
    least = min(len(turns), max(1, num_others // 4))
    num_others = max(least, min(max(num_others, urgent), fitting))

    chunk = 0
    if prefilling:
        first = min(prefilling, key=lambda r: r.prompt_order)
        least = max(least, min(urgent, num_others))
        num_others, chunk = share_with_prompt(len(always), num_others, least, first, costs, context_each, budget, now, limits)
    else:
        num_others = _fill_knee(len(always), num_others, len(turns), costs, context_each, limits)

    riders = always + turns[:num_others]
    needed = len(riders) + chunk
    sizes = sizes.within(budget - costs.attended * len(riders) * context_each, needed)
    attention = 0.0
    if prefilling:
        chunk += more_prompt(len(riders), chunk, first, prefilling, costs, sizes, context_each, budget)
        attention = costs.attended * chunk * (first.num_computed + 0.5 * chunk)
    worth = _worth(len(always), num_others, len(turns), costs, context_each)

    def price(size: int, samples: int) -> float:
        # A new size mostly stays for some steps: part of its price.
        change = costs.change / limits.stay if size != sizes.size else 0.0
        return costs.seconds(size, int(samples * context_each), samples) + attention + change

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
    return _finish(rows + chunks(prefilling, chunk), drafts.needed, decoding, forced_by, costs, sizes)


def _allowance(r: Request, now: float, limits: Limits) -> float:
    """Seconds that a step with `r` in it may last."""
    period = 1.0 / r.pace
    shortest = min(limits.shortest * min(r.tokens_per_step, limits.most_yield), limits.longest)
    reserve = limits.reserve_standard if r.mode is ModeName.STANDARD else limits.reserve
    return max(shortest * period, min(limits.longest * period, r.due - now - reserve * period))


def _turn_order(others: Sequence[Request], horizon: float, lead: float) -> tuple[int, list[Request]]:
    """The requests that take turns, and how many of them must ride: first those that would lose their lead (in tokens) if they
    missed this step (due before `horizon`, when the next step will have ended, but for the lead), by deadline; then by least
    service received."""
    dues = [(r.due, r) for r in others]
    must = [(due, r) for due, r in dues if due - lead / r.pace < horizon]
    must.sort(key=lambda pair: pair[0])
    may = sorted((r for due, r in dues if due - lead / r.pace >= horizon), key=lambda r: r.service)
    return len(must), [r for _, r in must] + may


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
