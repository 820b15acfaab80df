"""What a model's steps take on this machine, beside what they would take if reading the weights were all there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.calibrate.bandwidth import Bandwidth, at
from headway.calibrate.residency import Residency, step_bytes
from headway.calibrate.trial import Error, trial
from headway.catalog.local import LocalModel
from headway.compare.progress import Reporter
from headway.config import Settings
from headway.engines.base import EngineInfo, Matrices
from headway.modes import Modes
from headway.runtime.ladder import CONTEXT, SAMPLED_UP_TO
from headway.runtime.opened import open_model
from headway.runtime.paces import beside_full_house, modes_from
from headway.scheduler.cost import CostModel


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step of `tokens` rows that decode with CONTEXT tokens before each (more than SAMPLED_UP_TO: a prompt's chunk).
    gflop_s: two operations for each weight and token; None if the engine can't tell how many there are."""

    tokens: int
    seconds: float
    gflop_s: float | None


@dataclass(frozen=True, slots=True)
class ModelResult:
    """step_bytes: of weights that a step reads. floor_gb_s: the machine's for a working set of that size; floor_seconds: a step
    that only reads them. far_gb_s: that of the largest working set. costs: the ladder's. fast_beside_full: fast requests that
    can be promised their pace while every standard seat is taken. learnt: what steps cost while a server ran, None if none
    has; modes_learnt: with the paces that `headway serve` therefore promises."""

    id: str
    info: EngineInfo
    step_bytes: int
    floor_gb_s: float
    far_gb_s: float
    steps: list[StepTime]
    costs: CostModel
    error: Error
    modes: Modes
    fast_beside_full: int
    learnt: CostModel | None = None
    modes_learnt: Modes | None = None

    @property
    def residency(self) -> Residency:
        return Residency(self.step_bytes, self.floor_gb_s, self.far_gb_s)

    @property
    def floor_seconds(self) -> float:
        return self.step_bytes / (self.floor_gb_s * 1e9)

    @property
    def floor_share(self) -> float:
        """Speed of a step of one row over the floor's."""
        return self.floor_seconds / self.steps[0].seconds


def measure_model(model: LocalModel, settings: Settings, ladder: Sequence[Bandwidth], bar: Reporter) -> ModelResult:
    """Load it, measure its ladder of steps anew (and keep it for `headway serve`), and try it. Raises ModelError or
    UsageError."""
    opened = open_model(model, settings, bar.phase)
    engine = opened.engine
    try:
        times = opened.step_times(bar.phase, fresh=True)
        costs, learnt = times.costs, times.kept.learnt
        modes = modes_from(costs, settings.scheduler, settings.modes)
        bar.phase("comparing steps with their predictions")
        error = trial(engine, costs, modes, opened.limits, speculation=settings.scheduler.speculation, advance=bar.advance)
    finally:
        engine.close()
    size = step_bytes(engine.info)
    return ModelResult(
        id=settings.model.id or model.id,
        info=engine.info,
        step_bytes=size,
        floor_gb_s=at(ladder, size),
        far_gb_s=ladder[-1].gb_s,
        steps=step_times(costs, engine.info.matrices),
        costs=costs,
        error=error,
        modes=modes,
        fast_beside_full=beside_full_house(costs, settings.scheduler, modes),
        learnt=learnt,
        modes_learnt=None if learnt is None else modes_from(learnt, settings.scheduler, settings.modes),
    )


def step_times(costs: CostModel, matrices: Matrices | None) -> list[StepTime]:
    """At the sizes of the ladder."""
    times = []
    for tokens in sorted({1, *(knot for knot, _ in costs.curve())}):
        seconds = costs.seconds(tokens, tokens * (CONTEXT + 1), tokens if tokens <= SAMPLED_UP_TO else 1)
        times.append(StepTime(tokens, seconds, 2e-9 * matrices.weights * tokens / seconds if matrices else None))
    return times
