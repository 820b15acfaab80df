"""How others put a step together: composers for the same scheduler, by what vLLM's documentation and the papers describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.modes import ModeName
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, Step, fit

Order = Callable[[Request], tuple[float, ...]]


def fcfs(requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
    """Continuous batching with chunked prompts, first come, first served (vLLM's default): every request that has begun rides
    in each step, whether it decodes or is in mid-prompt; what is left of the token budget goes to the others by arrival."""
    return _step(requests, lambda r: (r.arrival,), costs, sizes, limits)


def priority(requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
    """Static priority (vLLM's `--scheduling-policy priority`): fast prompts first, but whoever decodes rides in every step.
    Whom to preempt when memory is short is the scheduler's matter: the lower pace."""
    return _step(requests, lambda r: (r.mode is not ModeName.FAST, r.arrival), costs, sizes, limits)


class Partitioned:
    """Separate batches for fast and standard, which take turns on the device: fast has `share` of the time while both have
    work. Within its own batches each is served first come, first served."""

    def __init__(self, share: float) -> None:
        self._shares = {ModeName.FAST: share, ModeName.STANDARD: 1.0 - share}
        self._used = dict.fromkeys(ModeName, 0.0)
        """Seconds over share, as far as it counts."""
        self._active: set[ModeName] = set()

    def __call__(self, requests: Sequence[Request], costs: CostModel, sizes: StepSizes, now: float, limits: Limits) -> Step:
        active = {r.mode for r in requests}
        if not active:
            return Step()
        for mode in active - self._active:  # time when it had no work is no credit
            self._used[mode] = max(self._used[mode], *(self._used[other] for other in active))
        self._active = active
        turn = min(active, key=lambda mode: (self._used[mode], mode is not ModeName.FAST))
        step = fcfs([r for r in requests if r.mode is turn], costs, sizes, now, limits)
        self._used[turn] += step.predicted / self._shares[turn]
        return step


def one_mode(requests: Sequence[Request]) -> bool:
    """When a partitioned machine lets all of them ride."""
    return len({r.mode for r in requests}) == 1


def anybody(requests: Sequence[Request]) -> bool:
    """All who decode ride, always."""
    return True


def _step(requests: Sequence[Request], order: Order, costs: CostModel, sizes: StepSizes, limits: Limits) -> Step:
    budget = limits.max_step_tokens
    rows: list[Row] = []
    for r in sorted(requests, key=lambda r: (r.first_token_at is None, r.num_computed == 0, *order(r))):
        n = min(r.pending, budget)
        if n == 0:
            break
        rows.append(Row(r, n, n == r.pending))
        budget -= n
    step = Step(rows)
    fit(step, costs, sizes)
    return step
