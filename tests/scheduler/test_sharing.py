"""Whose step is next on a device that models share, and what they promise each other."""

from __future__ import annotations

import math

import pytest

from headway.modes import Mode, ModeName, Modes
from headway.scheduler.admission import Refused
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.lookup import Lookup
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.sharing import Pressing, Turn, whose_turn


@pytest.mark.parametrize(
    ("models", "index", "until"),
    [
        ([Pressing(1.0, 0.04), None], 0, math.inf),
        ([None, Pressing(1.0, 0.004)], 1, math.inf),
        # Nobody is in a hurry: the earliest due.
        ([Pressing(0.2, 0.04), Pressing(0.3, 0.004)], 0, 0.296),
        ([Pressing(0.3, 0.04), Pressing(0.2, 0.004)], 1, 0.26),
        # A step of 40 ms first would make the second model late.
        ([Pressing(0.06, 0.04), Pressing(0.04, 0.004)], 1, 0.02),
        ([Pressing(0.1, 0.04), Pressing(0.02, 0.004)], 1, 0.06),
        # Nobody is in a hurry, but somebody waits for a first token.
        ([Pressing(0.2, 0.04), Pressing(0.3, 0.004, newcomer=True)], 1, 0.16),
        # Both would be late: the short step is over soon.
        ([Pressing(0.05, 0.04), Pressing(0.06, 0.025)], 1, 0.01),
        ([Pressing(0.01, 0.04), Pressing(0.02, 0.004)], 1, -0.03),
    ],
)
def test_who_cannot_wait_comes_first(models: list[Pressing | None], index: int, until: float) -> None:
    turn = whose_turn(models, 0.0)
    assert turn == Turn(index, pytest.approx(until))


def test_nothing_to_do() -> None:
    assert whose_turn([], 0.0) is None
    assert whose_turn([None, None], 0.0) is None


class Model:
    """A scheduler whose steps take a fixed time, whatever rides."""

    def __init__(self, mode: ModeName, pace: float, seats: int, seconds: float) -> None:
        costs = CostModel([(1, seconds), (64, seconds)], 0.0, 0.0)
        modes = Modes(Mode(mode, pace, seats, 0, 1.0))
        self.mode, self.pace, self.seconds = mode, pace, seconds
        self.scheduler = Scheduler(modes, BlockPool(4000, 8), costs, Limits(), speculation=False)

    def add(self, name: str, now: float, tokens: int = 2000) -> Request:
        request = Request(
            id=name,
            mode=self.mode,
            pace=self.pace,
            arrival=now,
            ttft_deadline=now + 1.0,
            tokens=[1, 2, 3],
            max_tokens=tokens,
            stop_tokens=frozenset(),
            lookup=Lookup(()),
        )
        self.scheduler.add(request, now)
        return request


def run(models: list[Model], until: float) -> None:
    """Step on a virtual clock."""
    now = 0.0
    while now < until:
        turn = whose_turn([m.scheduler.pressing() for m in models], now)
        assert turn is not None
        m = models[turn.index]
        step = m.scheduler.plan(now, turn.until)
        assert step is not None
        now += m.seconds
        m.scheduler.complete(step, [[7] for row in step.rows if row.samples], now, m.seconds)


def shared(large: Model, small: Model) -> None:
    large.scheduler.promises.elsewhere = small.scheduler.share
    small.scheduler.promises.elsewhere = large.scheduler.share


def test_paces_of_both_hold_where_the_device_has_time_for_both() -> None:
    large, small = Model(ModeName.STANDARD, 12.0, 8, 0.04), Model(ModeName.SPARK, 60.0, 4, 0.004)
    shared(large, small)
    rows = [large.add(f"l{i}", 0.0) for i in range(4)] + [small.add(f"s{i}", 0.0) for i in range(3)]
    run([large, small], 8.0)
    for row in rows:
        assert row.first_token_at is not None
        late = 1 - row.num_on_time / row.num_output
        assert late < 0.02, (row.id, row.num_on_time, row.num_output)
        assert row.first_token_at < 0.2
        assert row.num_output / (8.0 - row.first_token_at) >= row.pace


def test_a_model_does_not_promise_what_the_other_has_promised() -> None:
    large, small = Model(ModeName.STANDARD, 12.0, 8, 0.04), Model(ModeName.SPARK, 180.0, 4, 0.004)
    shared(large, small)
    large.add("l", 0.0)  # 12 x 40 ms: 48% of the time
    with pytest.raises(Refused):  # 180 x 4 ms: 72%
        small.add("s", 0.0)
    large.scheduler.cancel("l")
    small.add("s", 0.0)
    with pytest.raises(Refused):
        large.add("l2", 0.0)
    small.scheduler.cancel("s")
    large.add("l3", 0.0)
