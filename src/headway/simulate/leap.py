"""Many steps at once: while requests only decode, all ride and none comes or goes, the next steps differ in nothing but the
context that each adds. Their times follow without planning them; what they leave behind is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf, sqrt

from headway.scheduler.compose import compose, reckoned, reserve_of, shortest_of
from headway.scheduler.cost import CostModel, Observation
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.sizes import StepSizes
from headway.simulate.request import SimulatedRequest
from headway.simulate.stretch import Stretch, alike

Steady = Callable[[Sequence[Request]], bool]
"""Whether a composer is sure to let all of these decoding requests ride, for as long as none comes or goes."""


def same_pace(requests: Sequence[Request]) -> bool:
    """When headway's own compose does: nobody's pace is worth a smaller step."""
    pace = requests[0].pace
    if requests[-1].pace != pace:  # the fast ones come last: most often one look is enough
        return False
    return len({r.pace for r in requests}) == 1


class Leap(Stretch):
    """machine: what steps take; factor: of a step that starts at this time, or None. Where there is neither a factor nor a
    difference between the machine and the scheduler's cost model, that has nothing to learn from these steps."""

    def __init__(
        self, scheduler: Scheduler, machine: CostModel, steady: Steady, factor: Callable[[float], float] | None
    ) -> None:
        super().__init__(scheduler)
        self._machine = machine
        self._steady = steady
        self._factor = factor
        self._learns = factor is not None or not alike(scheduler.costs, machine)
        self._running: list[SimulatedRequest] = []
        self._seen: Observation | None = None  # the last step, as far as there is something to learn from it
        self._ends: list[float] = []  # of the steps before the even ones
        self._even: tuple[float, float, int] = (0.0, 0.0, 0)  # seconds of the first of them, growth of each next one, number
        self._begin = 0.0
        self._first = 0.0
        self._longest = 0.0

    def plan(self, running: list[SimulatedRequest], now: float, until: float) -> bool:
        if not self._steady(running):
            return False
        left = min([r.length - len(r.tokens) + r.num_prompt for r in running])
        most = len(running) * (left // self.pool.block_size + 1)
        if most > self.pool.num_free and sum([self.new_blocks(r, left) for r in running]) > self.pool.num_free:
            return False
        self._time(now, until, running, left)
        self._running = running
        self._advance()
        return True

    def complete(self) -> list[SimulatedRequest]:
        if self._seen is not None:
            self.scheduler.costs.observe(self._seen)
        ended = []
        end, size = self.end, self.pool.block_size
        for r in self._running:
            r.tokens.append(r.token)
            r.num_computed += 1
            r.last_token_at = end
            received = len(r.tokens) - r.num_prompt
            r.service = r.level + received / r.pace
            if r.num_computed >= (r.num_sealed + 1) * size:
                self.scheduler.seal(r)
            if received == r.length:
                ended.append(r)
        self.serve(self._running, 1)
        for r in ended:
            self.scheduler.cancel(r.id)
        return ended

    def _advance(self) -> None:
        """Bring pool and requests to where the last of the steps begins; with it counted where nobody can tell yet."""
        share = self.busy / len(self._running)
        steps, size = self.steps, self.pool.block_size
        first, longest = self._first, self._longest
        for r in self._running:
            if r.num_computed + steps > len(r.blocks) * size:
                self.give_blocks(r, self.new_blocks(r, steps))
            due = r.first_token_at + (len(r.tokens) - r.num_prompt) / r.pace  # type: ignore[operator]
            r.num_on_time += steps if first <= due and longest * r.pace <= 1.0 else self._on_time(r)
            r.tokens += [r.token] * (steps - 1)
            r.num_computed += steps - 1
            r.engine_seconds += share
        self.serve(self._running, steps - 1)

    def _time(self, now: float, limit: float, running: Sequence[Request], most: int) -> None:
        """So many steps at most, and none that would start at `limit` or later, but for the first: who comes just now is let in
        at its end."""
        rows, sizes = len(running), self.scheduler.sizes
        context = sum([r.num_computed for r in running]) + rows
        self._ends, self._seen, self._even = [], None, (0.0, 0.0, 0)
        self._begin = end = now
        self._longest = 0.0
        while len(self._ends) < most and (end < limit or not self._ends):
            if not self._learns and sizes.settled(rows):
                end = self._time_even(end, limit, context, rows, most - len(self._ends))
                break
            if self._seen is not None:
                self.scheduler.costs.observe(self._seen)
            size = self._sizes_for(running, context, end).fit(rows)
            changes = size != sizes.size
            sizes.take(rows, size)
            taken = self._machine.seconds(size, context, rows) + changes * self._machine.change
            if self._factor is not None:
                taken *= self._factor(end)
            if self._learns:
                self._seen = Observation(size, context, rows, taken, changes)
            end += taken
            self._ends.append(end)
            self._longest = max(self._longest, taken)
            context += rows
        self._first = self._ends[0] if self._ends else now + self._even[0]
        self.end, self.steps, self.busy = end, len(self._ends) + self._even[2], end - now

    def _sizes_for(self, running: Sequence[Request], context: int, now: float) -> StepSizes:
        """As compose has it, the last size given up where somebody's next token would wait for it. Only called for steps that
        don't keep their size anyway."""
        scheduler, rows, steps = self.scheduler, len(running), len(self._ends)
        if scheduler.composer is not compose or scheduler.sizes.size == scheduler.costs.grid.up(rows):
            return scheduler.sizes
        limits, pace = scheduler.limits, running[0].pace
        budget = longest = limits.longest / pace
        reserve = reserve_of(running[0], limits)
        mode = running[0].mode
        for r in running:
            due = r.first_token_at + (len(r.tokens) - r.num_prompt + steps) / pace  # type: ignore[operator]
            left = due - now - (reserve if r.mode is mode else reserve_of(r, limits))
            if left < longest:
                budget = min(budget, max(shortest_of(r, limits), left))
        spent = scheduler.costs.attended * rows * reckoned(context, rows)
        return scheduler.sizes.within(budget - spent, rows)

    def _time_even(self, begin: float, limit: float, context: int, rows: int, most: int) -> float:
        """Steps that keep their size, each `growth` longer than the one before; returns their end."""
        sizes = self.scheduler.sizes
        sizes.take(rows, sizes.size)
        first = self._machine.seconds(sizes.size, context, rows)
        growth = self._machine.attended * rows
        number = min(most, _steps_until(limit - begin, first, growth))
        self._even = first, growth, number
        self._longest = max(self._longest, first + growth * (number - 1))
        return begin + _sum(number, first, growth)

    def _on_time(self, r: SimulatedRequest) -> int:
        """How many of the tokens of all steps come by their deadlines."""
        assert r.first_token_at is not None
        first, received, pace = r.first_token_at, r.num_output, r.pace
        return sum([end <= first + n / pace for n, end in enumerate(self._every_end(), received)])

    def _every_end(self) -> list[float]:
        seconds, growth, number = self._even
        begin = self._ends[-1] if self._ends else self._begin
        return self._ends + [begin + _sum(n, seconds, growth) for n in range(1, number + 1)]


def _sum(n: int, first: float, growth: float) -> float:
    """Seconds of n steps."""
    return n * first + growth * (n * (n - 1) // 2)


def _steps_until(seconds: float, first: float, growth: float) -> int:
    """The fewest steps that take at least so many seconds; at least one."""
    if seconds == inf:
        return 10**9
    if growth > 0.0:
        b = first / growth - 0.5
        n = ceil(sqrt(b * b + 2.0 * seconds / growth) - b)
    else:
        n = ceil(seconds / first)
    n = max(1, n - 1)  # the formula may be off by its rounding
    while _sum(n, first, growth) < seconds:
        n += 1
    while n > 1 and _sum(n - 1, first, growth) >= seconds:
        n -= 1
    return n
