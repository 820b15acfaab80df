"""A stretch of steps that are not planned one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

from headway.modes import Modes
from headway.scheduler.cost import CostModel
from headway.scheduler.scheduler import Scheduler
from headway.simulate.request import SimulatedRequest


class Stretch(ABC):
    """`plan`, let in who has come by its `end`, `complete`: like the scheduler's own, for a stretch of steps, from one in which
    somebody came or went to the next such one.

    steps: how many; busy: seconds they take.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.end = 0.0
        self.busy = 0.0
        self.steps = 0
        self.scheduler = scheduler
        self.pool = scheduler.pool

    @abstractmethod
    def plan(self, running: list[SimulatedRequest], now: float, until: float) -> bool:
        """Whether there is a stretch to pass over for these, who do nothing but decode: from `now` to the step in which one of
        them ends or somebody arrives (at `until`), that step included. If so, everything is brought to where that last step is
        under way: who arrives finds the requests as if each step had been planned. If not, nothing is changed."""

    @abstractmethod
    def complete(self) -> list[SimulatedRequest]:
        """Bring scheduler, pool and requests to the end of the last step; returns the requests that ended."""

    def new_blocks(self, r: SimulatedRequest, tokens: int) -> int:
        """That it needs to have so many more computed."""
        return max(0, -(-(r.num_computed + tokens) // self.pool.block_size) - len(r.blocks))

    def give_blocks(self, r: SimulatedRequest, number: int) -> None:
        if not number:
            return
        blocks = self.pool.allocate(number)
        assert blocks is not None
        r.blocks += blocks

    def serve(self, requests: Sequence[SimulatedRequest], tokens: int) -> None:
        """Output tokens that each of these has got, counted for their keys: at once for each key."""
        if not tokens:
            return
        number, before = 0, None
        for r in requests:  # those of a mode mostly come together
            if before is not None and (r.key != before.key or r.mode is not before.mode):
                self.scheduler.note_served(before, tokens * number)
                number = 0
            before = r
            number += 1
        if before is not None:
            self.scheduler.note_served(before, tokens * number)


def undisturbed(scheduler: Scheduler, modes: Modes) -> list[SimulatedRequest]:
    """All who run, if they do nothing but decode and nobody is about to get a seat; else none."""
    if scheduler.newcomers:
        return []
    running = cast(list[SimulatedRequest], scheduler.running())
    if len(running) > scheduler.limits.max_step_tokens:
        return []
    for r in running:
        if len(r.tokens) - r.num_computed != 1 or r.first_token_at is None or r.held:
            return []
    for mode in modes:
        seated, waiting = scheduler.count(mode.name)
        if waiting and seated < mode.max_rows:
            return []
    return running


def alike(a: CostModel, b: CostModel) -> bool:
    """Whether they predict the same."""
    return a.to_dict() == b.to_dict() and a.drift == b.drift
