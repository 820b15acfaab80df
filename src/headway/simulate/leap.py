"""Many steps at once: while requests only decode, all ride and none comes or goes, the next steps differ in nothing but the
context that each adds. Their times follow without planning them; what they leave behind is the same."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from math import inf
from typing import cast

from headway.modes import Modes
from headway.scheduler.cost import CostModel, Observation
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.simulate.request import SimulatedRequest

Steady = Callable[[Sequence[Request]], bool]
"""Whether a composer is sure to let all of these decoding requests ride, for as long as none comes or goes."""


def same_pace(requests: Sequence[Request]) -> bool:
    """When headway's own compose does: nobody's pace is worth a smaller step."""
    pace = requests[0].pace
    return all(r.pace == pace for r in reversed(requests))  # the fast ones come last: most often one look is enough


class Leap:
    """`plan`, let in who has come by its `end`, `complete`: like the scheduler's own, for a stretch of steps.

    machine: what steps take; factor: drawn and multiplied to it for each step, or None. Where there is neither noise nor a
    difference between the machine and the scheduler's cost model, that has nothing to learn from these steps.
    """

    def __init__(
        self, scheduler: Scheduler, modes: Modes, machine: CostModel, steady: Steady, factor: Callable[[], float] | None
    ) -> None:
        self.end = 0.0
        self.busy = 0.0
        self.steps = 0
        self._scheduler = scheduler
        self._pool = scheduler.pool
        self._modes = modes
        self._machine = machine
        self._steady = steady
        self._factor = factor
        self._learns = factor is not None or not _alike(scheduler.costs, machine)
        self._running: list[SimulatedRequest] = []
        self._seen: list[Observation] = []
        self._ends: list[float] = []
        self._longest = 0.0
        self._sizes = scheduler.sizes

    def plan(self, now: float, until: float | None) -> bool:
        """Whether there is a stretch to leap over: from `now` to the step in which a request ends or somebody arrives (at
        `until`), that step included. Then `end`, `steps` and `busy`, in seconds, say how long it is. Changes nothing else."""
        running = self._undisturbed()
        if not running:
            return False
        self._running = running
        self._time(now, until, min([r.length - r.num_output for r in running]))
        return sum([self._blocks_needed(r) for r in running]) <= self._pool.num_free

    def complete(self) -> list[SimulatedRequest]:
        """Bring scheduler, pool and requests to where the steps would have brought them; returns those that ended."""
        for seen in self._seen:
            self._scheduler.costs.observe(seen)
        self._scheduler.sizes = self._sizes
        share = self.busy / len(self._running)
        for request in self._running:
            self._advance(request, share)
        ended = [r for r in self._running if r.num_output == r.length]
        for request in ended:
            self._scheduler.cancel(request.id)
        return ended

    def _undisturbed(self) -> list[SimulatedRequest]:
        """Those who ride in every step from now on; none if it is not that simple."""
        running = cast(list[SimulatedRequest], self._scheduler.running())
        if not running or len(running) > self._scheduler.limits.max_step_tokens or not self._steady(running):
            return []
        for r in reversed(running):  # the latest to come are the likeliest to have a prompt to compute
            if r.first_token_at is None or len(r.tokens) - r.num_computed != 1:
                return []
        for mode in self._modes:
            seated, waiting = self._scheduler.count(mode.name)
            if waiting and seated < mode.max_rows:
                return []
        return running

    def _time(self, now: float, until: float | None, most: int) -> None:
        rows = len(self._running)
        context = sum([r.num_computed for r in self._running]) + rows
        limit = inf if until is None else until
        self._ends, self._seen = [], []
        self._sizes = copy.copy(self._scheduler.sizes)
        end, self.busy, self._longest = now, 0.0, 0.0
        for _ in range(most):
            size = self._sizes.fit(rows)
            changes = size != self._sizes.size
            self._sizes.take(rows, size)
            taken = self._machine.seconds(size, context, rows) + changes * self._machine.change
            if self._factor is not None:
                taken *= self._factor()
            if self._learns:
                self._seen.append(Observation(size, context, rows, taken, changes))
            end += taken
            self._ends.append(end)
            self._longest = max(self._longest, taken)
            if end >= limit:
                break
            context += rows
        self.end, self.steps, self.busy = end, len(self._ends), end - now

    def _blocks_needed(self, r: SimulatedRequest) -> int:
        return -(-(r.num_computed + self.steps) // self._pool.block_size) - len(r.blocks)

    def _advance(self, r: SimulatedRequest, share: float) -> None:
        need = self._blocks_needed(r)
        if need > 0:
            blocks = self._pool.allocate(need)
            assert blocks is not None
            r.blocks += blocks
        r.num_on_time += self._on_time(r)
        r.tokens += [r.token] * self.steps
        r.last_token_at = self.end
        for _ in range(self.steps):  # one by one, since who goes first may hang on the last bit
            r.service += 1.0 / r.pace
        r.num_computed += self.steps
        r.engine_seconds += share
        self._scheduler.note_served(r, self.steps)
        self._scheduler.seal(r)

    def _on_time(self, r: SimulatedRequest) -> int:
        assert r.first_token_at is not None
        if self._ends[0] <= r.due and self._longest <= 1.0 / r.pace:
            return self.steps
        first, received, pace = r.first_token_at, r.num_output, r.pace
        return sum([end <= first + n / pace for n, end in enumerate(self._ends, received)])


def _alike(a: CostModel, b: CostModel) -> bool:
    return a.to_dict() == b.to_dict() and a.drift == b.drift
