"""How much of the prompts comes along in a step."""

from __future__ import annotations

from collections.abc import Sequence

from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, catching_up


def share_with_prompt(
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
    tries = (num_others, (num_others + least) // 2, least) if num_others > least else (least,)
    for others in tries:
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
    attended = costs.attended
    scores = first.to_score > 0
    spent = attended * rows * context_each + costs.sampled * (1 if scores else rows + 1)
    each = first.num_computed + 0.5 * min(first.pending, room)
    left = budget - spent + attended * rows * each
    fitting = costs.tokens_within(left, rows + room, context_each=each, sampled=scores) - rows
    chunk = max(min(limits.min_chunk, room), min(fitting, room))
    even = (rows + chunk) // limits.granule * limits.granule - rows
    return even if even >= chunk // 2 and even > 0 else chunk


def more_prompt(
    rows: int,
    chunk: int,
    first: Request,
    prefilling: Sequence[Request],
    costs: CostModel,
    sizes: StepSizes,
    context_each: float,
    budget: float,
) -> int:
    """Prompt tokens that fill what would be padding. Only what they attend to costs time, but much in a long prompt."""
    size = sizes.fit(rows + chunk)
    room = min(size - rows, sum(r.reach for r in prefilling)) - chunk
    each = costs.attended * (first.num_computed + chunk + 1) + (costs.sampled if first.to_score else 0.0)
    if room <= 0 or each <= 0.0:
        return max(0, room)
    context = int(rows * context_each + chunk * (first.num_computed + 0.5 * chunk))
    left = budget - costs.seconds(size, context, rows + 1)
    return max(0, min(room, int(left / each)))


def prompts_alone(prefilling: Sequence[Request], costs: CostModel, limits: Limits, now: float) -> int:
    """Prompt tokens of a step that nobody decodes in: as many as there are, but none so long that a newcomer would wait."""
    tokens = min(sum(r.reach for r in prefilling), limits.max_step_tokens)
    computed = min(prefilling, key=lambda r: r.prompt_order).num_computed if prefilling else 0
    longest = min(limits.longest_alone, max(0.0, limits.until - now))
    scores = any(r.to_score for r in prefilling)
    fitting = costs.tokens_within(longest, tokens, context_each=computed + 0.5 * tokens, sampled=scores)
    return max(min(tokens, limits.granule), fitting)


def chunks(prefilling: Sequence[Request], tokens: int) -> list[Row]:
    """Give `tokens` to the prompts, in their order."""
    rows: list[Row] = []
    for r in sorted(prefilling, key=lambda r: r.prompt_order):
        if tokens <= 0:
            break
        n = min(tokens, r.reach)
        rows.append(catching_up(r, n))
        tokens -= n
    return rows
