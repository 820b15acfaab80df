"""The trial over an engine whose step times are known: it sees whether the cost model is right, and all kinds of steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fake_engine import FakeEngine

from headway.calibrate.trial import ACT, trial
from headway.engines.base import BatchRow
from headway.modes import Mode, ModeName, Modes
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits

MODES = Modes(Mode(ModeName.STANDARD, 10.0, 6, 0, 2.0), Mode(ModeName.FAST, 25.0, 2, 0, 0.3))
BASE = [(1, 0.0105), (256, 0.138)]


class Timed(FakeEngine):
    """Time passes only where the step's formula says so; the books are checked as in every FakeEngine."""

    def __init__(self, speed: float = 1.0, **sizes: int) -> None:
        super().__init__(**({"num_blocks": 2000, "block_size": 16, "context_length": 900} | sizes))  # type: ignore[arg-type]
        self.now = 0.0
        self.speed = speed
        self.steps: list[tuple[int, int, int]] = []

    def start(self, rows: Sequence[BatchRow], size: int) -> None:
        super().start(rows, size)
        tokens = sum(len(r.tokens) for r in rows)
        context = sum(r.start + i + 1 for r in rows for i in range(len(r.tokens)))
        self.steps.append((len(rows), tokens, max(r.start for r in rows)))
        self.now += self.speed * (0.010 + 0.0005 * tokens + 1e-6 * context)


def costs() -> CostModel:
    return CostModel(BASE, 1e-6, 0.0)


@pytest.mark.parametrize("speculation", [True, False])
def test_a_cost_model_that_is_right_has_no_error(speculation: bool) -> None:
    engine = Timed()
    error = trial(engine, costs(), MODES, Limits(), speculation=speculation, clock=lambda: engine.now)
    assert error.steps == len(engine.steps) == 200
    assert max(error.median, error.p95, error.ladder_median, error.ladder_p95) < 1e-6


def test_a_machine_that_has_become_slower_shows_in_the_ladder_more_than_in_what_is_learnt() -> None:
    engine = Timed(speed=1.5)
    mine = costs()
    error = trial(engine, mine, MODES, Limits(), speculation=True, clock=lambda: engine.now)
    assert (error.ladder_median, error.ladder_p95) == pytest.approx((0.5, 0.5))
    assert error.median < 0.1 < error.p95 < 0.51
    assert mine.to_dict() == costs().to_dict(), "the ladder's own model is left as it was"
    assert mine.error() == (0.0, 0.0)


def test_it_makes_all_kinds_of_steps() -> None:
    engine = Timed()
    trial(engine, costs(), MODES, Limits(max_step_tokens=64), speculation=False, clock=lambda: engine.now)
    rows = {rows for rows, _, _ in engine.steps}
    assert min(rows) <= 2 and max(rows) >= 6
    assert any(rows == tokens for rows, tokens, _ in engine.steps), "steps that only decode"
    assert any(1 < rows < tokens for rows, tokens, _ in engine.steps), "prompts beside them"
    assert all(tokens <= 64 for _, tokens, _ in engine.steps)
    assert max(start for _, _, start in engine.steps) > 300 > 40 > min(start for _, _, start in engine.steps)


def test_two_trials_are_the_same() -> None:
    first, second = Timed(), Timed()
    for engine in (first, second):
        trial(engine, costs(), MODES, Limits(), speculation=True, steps=2 * ACT, clock=lambda e=engine: e.now)  # type: ignore[misc]
    assert first.steps == second.steps


def test_a_small_memory_is_enough() -> None:
    engine = Timed(num_blocks=16, block_size=16, context_length=256)
    error = trial(engine, costs(), MODES, Limits(), speculation=True, clock=lambda: engine.now)
    assert error.ladder_p95 < 1e-6
