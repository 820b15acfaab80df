"""The virtual machine: the real scheduler on a clock that moves by what the cost model says each step takes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import count
from math import inf
from typing import cast

from headway.modes import ModeName, Modes
from headway.scheduler.admission import Refused
from headway.scheduler.compose import compose
from headway.scheduler.cost import CostModel
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.step import Row, Step
from headway.simulate.coming import Coming
from headway.simulate.leap import Leap, Steady, same_pace
from headway.simulate.request import STOP, SimulatedRequest, from_arrival
from headway.simulate.result import SimulationResult
from headway.simulate.stretch import Stretch, alike, undisturbed
from headway.simulate.trace import Arrival
from headway.simulate.turns import Turns

TELL_EVERY = 1000
"""Arrivals between two words about how far it is."""


class Simulation:
    """One run of traffic; `run` may be called once.

    machine: what steps really take (the scheduler has a cost model of its own, and learns). noise: standard deviation of the
    logarithm of a factor on each step's time, whose mean is 1. slower: another factor, of steps that start at a time. If the
    scheduler speculates: acceptance, the chance that a draft proves right (drafts are offered in each step); None: as many
    drafts as each arrival says, of which as many prove right.
    downgrade: a fast request that finds no place is tried at standard, as the server does. steady: when the scheduler's
    composer is sure to let all ride; steps are planned one by one elsewhere, and everywhere if it is None.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        modes: Modes,
        machine: CostModel,
        *,
        noise: float = 0.0,
        slower: Callable[[float], float] | None = None,
        acceptance: float | None = None,
        seed: int = 0,
        downgrade: bool = True,
        steady: Steady | None = same_pace,
    ) -> None:
        self.now = 0.0
        self.result = SimulationResult.empty(modes)
        self._scheduler = scheduler
        self._modes = modes
        self._machine = machine
        self._acceptance = acceptance
        self._downgrade = downgrade
        self._factor = _factor(slower, noise, seed)
        self._draw = random.Random(f"drafts {seed}").random
        self._numbers = count(1)
        self._stretches: list[Stretch] = []
        if steady is not None and not scheduler.speculation:
            self._stretches.append(Leap(scheduler, machine, steady, self._factor))
            if scheduler.composer is compose and self._factor is None and alike(scheduler.costs, machine):
                self._stretches.append(Turns(scheduler))
        self._coming = Coming()
        self._tell: Callable[[int], None] = lambda arrived: None

    def run(self, arrivals: Iterable[Arrival], tell: Callable[[int], None] | None = None) -> SimulationResult:
        """Until all have been served. arrivals: in order of time, each with a mode. tell: hears now and then how many have
        arrived."""
        self._tell = tell or self._tell
        self._coming = Coming(arrivals)
        begin = self.now = self._coming.at if self._coming.at < inf else 0.0
        while self._turn():
            pass
        self.result.seconds = self.now - begin
        self.result.evicted = self._scheduler.num_evicted
        self._tell(self.result.requests)
        return self.result

    def _turn(self) -> bool:
        """A stretch of steps, a step, or the wait for the next arrival; False when there is nothing left to do."""
        running = undisturbed(self._scheduler, self._modes) if self._stretches else []
        for stretch in self._stretches if running else ():
            if stretch.plan(running, self.now, self._coming.at):
                self._pass(stretch.end, stretch.steps, stretch.busy)
                for request in stretch.complete():
                    self._end(request)
                return True
        step = self._scheduler.plan(self.now)
        if step is not None:
            self._run(step)
            return True
        if self._coming.at == inf:
            return False
        self._pass(self._coming.at, 0, 0.0)
        return True

    def _run(self, step: Step) -> None:
        seconds = self._machine.seconds(step.size, step.context, step.num_samples) + step.changes * self._machine.change
        if self._factor is not None:
            seconds *= self._factor(self.now)
        self._pass(self.now + seconds, 1, seconds)
        sampled = [self._sample(row) for row in step.rows if row.samples]
        for received in self._scheduler.complete(step, sampled, self.now, seconds):
            if received.ended:
                self._end(cast(SimulatedRequest, received.request))

    def _end(self, request: SimulatedRequest) -> None:
        self.result[request.mode].add(request)
        if request.then is not None:
            self._coming.add(request.then, self.now + request.think)

    def _pass(self, end: float, steps: int, busy: float) -> None:
        """Let time pass. Who comes while a step runs finds those whom it ends still in their seats, as in the engine loop."""
        self.now = end
        self.result.steps += steps
        self.result.busy += busy
        while self._coming.at <= end:
            self._arrive(self._coming.pop())

    def _arrive(self, arrival: Arrival) -> None:
        assert arrival.mode is not None
        asked = self.result[arrival.mode]
        asked.asked += 1
        if asked.asked % TELL_EVERY == 0:
            self._tell(self.result.requests)
        try:
            if self._add(arrival, arrival.mode):
                return
            if arrival.mode is ModeName.FAST and self._downgrade and self._add(arrival, ModeName.STANDARD):
                asked.downgraded += 1
                return
            asked.refused += 1
        except ValueError:
            asked.too_long += 1
        if arrival.then is not None:  # its answer was a refusal
            self._coming.add(arrival.then, arrival.at + arrival.think)

    def _add(self, arrival: Arrival, name: ModeName) -> bool:
        request = from_arrival(arrival, next(self._numbers), self._modes[name], self._modes.highest)
        if self._acceptance is not None:
            request.acceptance = self._acceptance
        else:
            request.acceptance, request.drafts_per_step = arrival.acceptance, arrival.drafts_per_step or 0.0
        try:
            self._scheduler.add(request, self.now)
        except Refused:
            return False
        return True

    def _sample(self, row: Row) -> list[int]:
        """The row's drafts as far as they prove right, and one token more, the last of which ends the request if it is time."""
        request = cast(SimulatedRequest, row.request)
        left = request.length - (len(request.tokens) - request.num_prompt)
        if not row.num_drafts and left > 1:
            return request.sampled
        tokens: list[int] = []
        for draft in request.drafts[: row.num_drafts]:
            if self._draw() >= request.acceptance:
                break
            tokens.append(draft)
        tokens.append(-request.token if len(tokens) < row.num_drafts else request.token)
        if len(tokens) >= left:
            tokens[left - 1 :] = [STOP]
        return tokens


def _factor(slower: Callable[[float], float] | None, noise: float, seed: int) -> Callable[[float], float] | None:
    """On the seconds of a step that starts at a time."""
    if not noise:
        return slower
    lognormal = random.Random(f"noise {seed}").lognormvariate
    mean = -0.5 * noise**2
    if slower is None:
        return lambda now: lognormal(mean, noise)
    return lambda now: slower(now) * lognormal(mean, noise)
