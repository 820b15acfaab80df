"""The ladder over an engine whose step times are known."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from numpy.typing import NDArray

from headway.engines.base import BatchRow
from headway.runtime import kept
from headway.runtime.ladder import is_exact, step_times
from headway.scheduler.cost import CostModel


class Timed(FakeEngine):
    """Time passes only where the step's formula says so."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__(num_blocks=4000, block_size=32, context_length=8192)
        self.now = 0.0
        self.speed = speed

    def start(self, rows: Sequence[BatchRow], size: int) -> None:
        tokens = sum(len(r.tokens) for r in rows)
        context = sum((r.start + 1) * len(r.tokens) for r in rows)
        samples = sum(r.num_sampled for r in rows)
        self.num_steps += 1
        self.now += self.speed * (0.01 + 0.0005 * tokens + 1e-6 * context + 1e-5 * samples)

    def wait(self) -> NDArray:  # type: ignore[type-arg]
        return None  # type: ignore[return-value]


def test_it_finds_the_formula() -> None:
    engine = Timed()
    costs = step_times(engine, 256, clock=lambda: engine.now).costs
    assert costs.per_context == pytest.approx(1e-6, rel=0.01)
    assert costs.per_sample == pytest.approx(1e-5, rel=0.01)
    assert costs.seconds(20, 20 * 400, 20) == pytest.approx(0.01 + 0.01 + 0.008 + 0.0002, rel=0.01)


def test_a_cached_ladder_is_used_while_it_agrees_and_scaled(tmp_path: Path) -> None:
    first = Timed()
    step_times(first, 256, tmp_path, identity="a", clock=lambda: first.now)
    again = Timed(speed=1.2)
    times = step_times(again, 256, tmp_path, identity="a", clock=lambda: again.now)
    costs = times.costs
    assert times.about == "measured at an earlier start"
    assert again.num_steps < first.num_steps / 3
    assert costs.seconds(16, 16 * 129, 16) == pytest.approx(1.2 * (0.01 + 0.008 + 16 * 129e-6 + 16e-5), rel=0.02)


@pytest.mark.parametrize("spoil", ["other identity", "other machine", "half a file"])
def test_a_cached_ladder_that_does_not_fit_is_measured_again(tmp_path: Path, spoil: str) -> None:
    first = Timed()
    step_times(first, 256, tmp_path, identity="a", clock=lambda: first.now)
    if spoil == "half a file":
        for path in tmp_path.iterdir():
            path.write_text(path.read_text()[:40])
    again = Timed(speed=3.0 if spoil == "other machine" else 1.0)
    costs = step_times(again, 256, tmp_path, identity="b" if spoil == "other identity" else "a", clock=lambda: again.now).costs
    assert again.num_steps >= first.num_steps
    assert costs.per_context == pytest.approx(1e-6 * again.speed, rel=0.01)


def test_the_newest_ladder_of_a_model_is_found_with_its_pool(tmp_path: Path) -> None:
    assert kept.newest(tmp_path, "digest") is None
    for number, identity in enumerate(("a digest x", "b digest y", "c other z")):
        engine = Timed(speed=1.0 + number)
        step_times(engine, 64, tmp_path, identity=identity, clock=lambda engine=engine: engine.now)  # type: ignore[misc]
    for path in tmp_path.iterdir():
        identity = json.loads(path.read_text())["identity"]
        os.utime(path, (1, {"a": 30, "b": 20, "c": 40}[identity[0]]))
    (tmp_path / "broken.json").write_text("{")
    found = kept.newest(tmp_path, "digest")
    assert found is not None
    assert (found.identity, found.num_blocks, found.block_size) == ("a digest x", 4000, 32)
    assert found.costs.per_context == pytest.approx(1e-6, rel=0.01)


def learn(path: Path, factor: float) -> None:
    """As if a server had seen its steps take so much longer than measured, for long."""
    known = kept.read(path)
    assert known is not None
    seen = CostModel.from_dict(known.measured.to_dict())
    seen.drift = factor
    for _ in range(60):
        known = dataclasses.replace(known, learnt=kept.blend(known.costs, seen, 0.5, known.measured))
    kept.write(path, known)


@pytest.mark.parametrize(("speed", "expected"), [(1.0, 1.4), (0.8, 1.4), (1.5, 1.5)])
def test_learnt_times_are_used_unless_the_quiet_machine_is_slower_by_now(tmp_path: Path, speed: float, expected: float) -> None:
    first = Timed()
    measured = step_times(first, 256, tmp_path, identity="a", clock=lambda: first.now).costs
    learn(kept.path_of(tmp_path, "a"), 1.4)
    again = Timed(speed=speed)
    times = step_times(again, 256, tmp_path, identity="a", clock=lambda: again.now)
    assert again.num_steps < first.num_steps / 3
    assert times.costs.seconds(16, 2000, 16) == pytest.approx(expected * measured.seconds(16, 2000, 16), rel=0.02)
    assert times.about == "learnt while serving, 1.40 times those measured on the quiet machine"


@pytest.mark.parametrize(("speed", "stays"), [(1.2, True), (3.0, False)])
def test_a_fresh_ladder_keeps_what_was_learnt_beside_it_if_it_is_the_same_machine(
    tmp_path: Path, speed: float, stays: bool
) -> None:
    first = Timed()
    measured = step_times(first, 256, tmp_path, identity="a", clock=lambda: first.now).costs
    learn(kept.path_of(tmp_path, "a"), 1.4)
    again = Timed(speed=speed)
    times = step_times(again, 256, tmp_path, identity="a", fresh=True, clock=lambda: again.now)
    assert times.about == "measured now"
    assert times.costs.seconds(16) == pytest.approx(speed * measured.seconds(16), rel=0.02)
    known = kept.read(kept.path_of(tmp_path, "a"))
    assert known is not None
    assert (known.learnt is not None) == stays


def test_what_was_learnt_on_a_machine_that_is_another_now_is_forgotten(tmp_path: Path) -> None:
    first = Timed()
    step_times(first, 256, tmp_path, identity="a", clock=lambda: first.now)
    learn(kept.path_of(tmp_path, "a"), 1.4)
    again = Timed(speed=3.0)
    assert step_times(again, 256, tmp_path, identity="a", clock=lambda: again.now).about == "measured now"
    known = kept.read(kept.path_of(tmp_path, "a"))
    assert known is not None
    assert known.learnt is None


def test_an_engine_whose_rows_agree_is_exact_and_one_that_depends_on_the_batch_is_not() -> None:
    class Drifting(FakeEngine):
        def start(self, rows: Sequence[BatchRow], size: int) -> None:
            super().start(rows, size)
            assert self._logits is not None
            self._logits += 1e-6 * len(rows)

    assert is_exact(FakeEngine(num_blocks=40, context_length=128))
    assert not is_exact(Drifting(num_blocks=40, context_length=128))
