"""A step: who rides in it, and with how many tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.scheduler.blocks import BlockCopy
from headway.scheduler.cost import CostModel, Observation
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes


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
