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
from operator import attrgetter

from headway.modes import ModeName
from headway.scheduler.chunks import chunks, more_prompt, prompts_alone, share_with_prompt
from headway.scheduler.cost import CostModel
from headway.scheduler.draft import allocate
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, Step, fit

CONTEXT_GRAIN = 16
"""Less context than that decides nothing; so choices repeat, and who asks often may remember them (see simulate/turns.py)."""


def compose(requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
    """The next step over the admitted requests; without rows if none has anything to compute. Changes nothing."""
    decoding, prefilling = _by_work(requests)
    step = Step()
    if not decoding:
        needed = prompts_alone(prefilling, costs, limits, now)
        step.rows = chunks(prefilling, needed)
        fit(step, costs, sizes, needed)
        return step

    context = sum([len(r.tokens) for r in decoding])
    context_each = reckoned(context, len(decoding))
    tightest = max([r.pace for r in decoding])
    always = [r for r in decoding if r.pace >= tightest]
    others = [r for r in decoding if r.pace < tightest]
    budget = _allowance(always, now, limits)
    urgent, turns = _turn_order(others, now + 2 * budget, limits.lead)
    # Rows that get several tokens a step need fewer steps, so there is time for more of the others in each.
    step_pace = tightest / min(limits.most_yield, *[r.tokens_per_step for r in always])
    wanted = wanted_others(len(always), [r.pace for r in others], step_pace, costs, context_each, limits)
    least, num_others = others_within(budget, len(always), len(turns), wanted, urgent, costs, context_each)

    chunk = 0
    if prefilling:
        first = min(prefilling, key=lambda r: r.prompt_order)
        least = max(least, min(urgent, num_others))
        num_others, chunk = share_with_prompt(len(always), num_others, least, first, costs, context_each, budget, now, limits)
    else:
        num_others = fill_knee(len(always), num_others, len(turns), costs, context_each, limits)

    riders = always + turns[:num_others]
    needed = len(riders) + chunk
    sizes = sizes.within(budget - costs.attended * len(riders) * context_each, needed)
    attention = 0.0
    if prefilling:
        chunk += more_prompt(len(riders), chunk, first, prefilling, costs, sizes, context_each, budget)
        attention = costs.attended * chunk * (first.num_computed + 0.5 * chunk)
    if len(riders) < len(decoding):
        step.forced_by = always
        step.efficient = efficient(len(decoding), context, costs)
    if not any(r.drafts for r in riders):
        step.rows = [Row(r, 1, True) for r in riders] + chunks(prefilling, chunk)
        fit(step, costs, sizes, needed)
        return step
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
    step.rows = [Row(r, 1 + n, True, n) for r, n in zip(riders, drafts.counts, strict=True)] + chunks(prefilling, chunk)
    fit(step, costs, sizes, drafts.needed)
    return step


def reckoned(context: int, rows: int) -> int:
    """The tokens of context that each of some rows is reckoned with: on average, in multiples of CONTEXT_GRAIN."""
    return CONTEXT_GRAIN * round(context / (rows * CONTEXT_GRAIN))


def efficient(rows: int, context: int, costs: CostModel) -> float:
    """Seconds per token of the step that all who decode would ride in."""
    return costs.seconds(rows, context, rows) / rows


def _by_work(requests: Sequence[Request]) -> tuple[list[Request], list[Request]]:
    """Those who decode, and those with a prompt to compute (or what an eviction has made one)."""
    decoding: list[Request] = []
    prefilling: list[Request] = []
    for r in requests:
        pending = len(r.tokens) - r.num_computed
        if pending == 1 and r.first_token_at is not None:
            decoding.append(r)
        elif pending > 0:
            prefilling.append(r)
    return decoding, prefilling


def _next_due(r: Request) -> float:
    """Its `due`, sooner: of one that decodes."""
    return r.first_token_at + (len(r.tokens) - r.num_prompt) / r.pace  # type: ignore[operator]


def _allowance(always: Sequence[Request], now: float, limits: Limits) -> float:
    """Seconds that a step with all of these may last. They have one pace."""
    pace = always[0].pace
    budget = longest = limits.longest / pace
    if limits.until < now + longest:
        budget = max(limits.shortest / pace, limits.until - now)
    reserve, reserve_standard = limits.reserve / pace, limits.reserve_standard / pace
    for r in always:
        left = _next_due(r) - now - (reserve_standard if r.mode is ModeName.STANDARD else reserve)
        if left < longest:
            budget = min(budget, max(shortest_of(r, limits), left))
    return budget


def shortest_of(r: Request, limits: Limits) -> float:
    """Seconds: a step with `r` in it is made no shorter for its sake."""
    return min(limits.shortest * min(r.tokens_per_step, limits.most_yield), limits.longest) / r.pace


def reserve_of(r: Request, limits: Limits) -> float:
    """Seconds of credit that `r` should keep."""
    return (limits.reserve_standard if r.mode is ModeName.STANDARD else limits.reserve) / r.pace


def _turn_order(others: Sequence[Request], horizon: float, lead: float) -> tuple[int, list[Request]]:
    """The requests that take turns, and how many of them must ride: first those that would lose their lead (in tokens) if they
    missed this step (due before `horizon`, when the next step will have ended, but for the lead), by deadline; then by least
    service received."""
    if not others:
        return 0, []
    must: list[tuple[float, int, Request]] = []
    may: list[Request] = []
    for n, r in enumerate(others):
        due = _next_due(r)
        if due - lead / r.pace < horizon:
            must.append((due, n, r))
        else:
            may.append(r)
    must.sort()
    may.sort(key=attrgetter("service"))
    return len(must), [r for _, _, r in must] + may


def wanted_others(
    num_always: int, paces: Sequence[float], step_pace: float, costs: CostModel, context_each: float, limits: Limits
) -> int:
    """How many of those who take turns, with these paces, should ride: their fair share if there are `step_pace` steps a
    second, but at least what keeps the step efficient."""
    if not paces:
        return 0
    fair = int(sum(paces) / step_pace / limits.advantage + 0.5)
    everyone = num_always + len(paces)

    def rate(n: int) -> float:
        return n / costs.seconds(n, int(n * context_each), n)

    wanted = limits.efficiency_floor * rate(everyone)
    low, high = max(1, min(fair, len(paces))), len(paces)
    while low < high:  # the rate rises with n, up to the knees
        middle = (low + high) // 2
        if rate(num_always + middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def others_within(
    budget: float, num_always: int, available: int, wanted: int, urgent: int, costs: CostModel, context_each: float
) -> tuple[int, int]:
    """(the least, how many) of those who take turns ride in a step that may last `budget`. Whatever the fast rows need,
    somebody else moves on in every step: nobody starves."""
    if not available:
        return 0, 0
    least = min(available, max(1, wanted // 4))
    fitting = costs.tokens_within(budget, num_always + available, context_each=context_each, sampled=True) - num_always
    return least, max(least, min(max(wanted, urgent), fitting))


def fill_knee(num_always: int, num_others: int, available: int, costs: CostModel, context_each: float, limits: Limits) -> int:
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
