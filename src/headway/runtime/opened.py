"""From a model on disk to an engine and the cost model of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.catalog.home import home
from headway.catalog.local import LocalModel
from headway.config import SchedulerSettings, Settings
from headway.engines import open_engine
from headway.engines.base import Engine
from headway.engines.convert import converted
from headway.runtime.ladder import cost_model
from headway.runtime.paces import limits_from
from headway.scheduler.compose import Limits
from headway.scheduler.cost import CostModel

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OpenModel:
    """identity: all that its step times depend on, besides the machine."""

    engine: Engine
    limits: Limits
    identity: str

    def costs(self, say: Say, *, fresh: bool = False) -> CostModel:
        """From the cache if it still agrees and nothing fresh is asked for, else measured, and cached. Use it before anything
        else runs on the engine: it writes over KV blocks."""
        say("measuring step times")
        return cost_model(self.engine, self.limits.max_step_tokens, home() / "ladders", identity=self.identity, fresh=fresh)


def open_model(model: LocalModel, settings: Settings, say: Say) -> OpenModel:
    """Convert it if need be, and load it. `say` is told in a few words what is being done. Raises ModelError or UsageError."""
    folder = model.path
    if model.kind == "gguf":
        say("converting the model (once)")
        folder = converted(model.path, model.sha256, settings.engine.weights, home() / "converted")
    say("loading the model")
    seats = num_seats(settings.scheduler)
    engine = open_engine(folder, settings.engine, model.context_length, seats * model.context_length)
    limits = limits_from(settings.scheduler)
    sizes = f"{settings.scheduler.max_step_tokens} {seats}"
    return OpenModel(engine, limits, f"{folder.name} {model.sha256} {engine.info.description} {sizes}")


def num_seats(scheduler: SchedulerSettings) -> int:
    """Of both modes."""
    return scheduler.max_rows + scheduler.fast_rows
