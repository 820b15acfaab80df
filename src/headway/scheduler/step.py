"""A step: who rides in it, and with how many tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.scheduler.blocks import BlockCopy
from headway.scheduler.cost import CostModel, Observation
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes


@dataclass(slots=True, eq=False)
class Row:
    """num_tokens to compute from `request.num_computed` on: pending ones, and after them `num_drafts` of the request's drafts.
    samples: the pending ones are all there, so the next token comes out (and one more for each draft that proves right).
    num_scored: after so many of the tokens the likelihood of the prompt's next one is wanted. Not to be changed; not frozen
    only because that makes a step of many rows cost a good deal more."""

    request: Request
    num_tokens: int
    samples: bool
    num_drafts: int = 0
    num_scored: int = 0

    @property
    def num_samples(self) -> int:
        """Rows of logits, of the last tokens: first those that score the prompt."""
        return self.num_scored + self.num_drafts + self.samples


def catching_up(request: Request, num_tokens: int) -> Row:
    """A row of so many pending tokens."""
    end = request.num_computed + num_tokens
    scored = min(end, request.num_prompt - 1) - max(request.num_computed, request.num_scored) if request.to_score else 0
    return Row(request, num_tokens, num_tokens == request.pending, num_scored=max(0, scored))


@dataclass(slots=True)
class Step:
    """One forward pass.

    size: tokens, with padding; needed: those of them that are not there only because there was room. num_tokens, num_samples:
    sums over the rows. context: sum over the tokens of the positions each attends to (itself included). changes: the size is
    another than the last step's. predicted: seconds. All these are set by `fit`.

    forced_by: the requests whose pace made the step smaller than the most efficient one, whose seconds per token would have
    been `efficient` (see charge.py). copies: to be made in this order before the step starts; set by the scheduler when it
    gives out the blocks.
    """

    rows: list[Row] = field(default_factory=list)
    size: int = 0
    needed: int = 0
    num_tokens: int = 0
    num_samples: int = 0
    context: int = 0
    changes: bool = False
    predicted: float = 0.0
    forced_by: list[Request] = field(default_factory=list)
    efficient: float = 0.0
    copies: list[BlockCopy] = field(default_factory=list)

    def observed(self, seconds: float) -> Observation:
        """What the cost model can learn of the step, which took so long."""
        return Observation(self.size, self.context, self.num_samples, seconds, self.changes)


def fit(step: Step, costs: CostModel, sizes: StepSizes, needed: int | None = None) -> None:
    """Set the sums over a step's rows, its size by them, and what it should take. needed: see Step; None = all."""
    if not step.rows:
        return
    tokens = samples = context = 0
    for row in step.rows:
        n = row.num_tokens
        tokens += n
        samples += row.num_scored + row.num_drafts + row.samples
        context += n * row.request.num_computed + n * (n + 1) // 2
    step.num_tokens, step.num_samples, step.context = tokens, samples, context
    step.needed = tokens if needed is None else min(needed, tokens)
    step.size = sizes.fit(tokens)
    if step.needed < tokens:
        step.size = max(step.size, sizes.fit(step.needed))
    step.changes = step.size != sizes.size
    step.predicted = costs.seconds(step.size, context, samples) + step.changes * costs.change
