"""From a model on disk to an engine and the cost model of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headway.catalog.heads import head_for
from headway.catalog.home import home
from headway.catalog.local import LocalModel
from headway.compare.prompts import PROMPTS
from headway.config import Settings
from headway.engines import open_engine
from headway.engines.base import Engine
from headway.engines.convert import Smoothing, converted
from headway.errors import UsageError
from headway.runtime.kept import Keeper, path_of
from headway.runtime.ladder import StepTimes, step_times
from headway.runtime.paces import limits_from, num_seats
from headway.runtime.texts import load_texts
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits

Say = Callable[[str], None]

LARGEST_GROUP = {"exact": 64, "throughput": 256}
"""Channels of activations that share a scale, at most (docs/performance.md has what each costs and brings)."""


@dataclass(frozen=True, slots=True)
class OpenModel:
    """identity: all that its step times depend on, besides the machine."""

    engine: Engine
    limits: Limits
    identity: str

    def step_times(self, say: Say, *, fresh: bool = False) -> StepTimes:
        """From the cache if it still agrees and nothing fresh is asked for, else measured, and cached. Use it before anything
        else runs on the engine: it writes over KV blocks."""
        say("measuring step times")
        return step_times(self.engine, self.limits.max_step_tokens, home() / "ladders", identity=self.identity, fresh=fresh)

    def keeper(self, costs: CostModel) -> Keeper:
        """Of what these costs, from `step_times`, learn from now on."""
        return Keeper(path_of(home() / "ladders", self.identity), costs)


def open_model(model: LocalModel, settings: Settings, say: Say) -> OpenModel:
    """Convert it if need be, and load it. `say` is told in a few words what is being done. Raises ModelError or UsageError."""
    folder = graph_folder(model, settings, say)
    say("loading the model")
    seats = num_seats(settings.scheduler)
    head = draft_head(model, settings)
    engine = open_engine(folder, settings.engine, model.context_length, seats * model.context_length, head)
    limits = limits_from(settings.scheduler)
    sizes = f"{settings.scheduler.max_step_tokens} {seats}"
    return OpenModel(engine, limits, f"{folder.name} {model.sha256} {engine.info.description} {sizes}")


def draft_head(model: LocalModel, settings: Settings) -> Path | None:
    """The file with the draft head to use, if any. Raises UsageError for one that isn't there."""
    wanted = settings.engine.draft_head
    if wanted == "none" or settings.engine.draft_model is not None or not settings.scheduler.speculation:
        return None
    if wanted == "auto":
        return head_for(model.sha256)
    path = Path(wanted)
    if not path.is_file():
        raise UsageError(f'engine.draft_head: there is no file {path}; give one, "auto" or "none"')
    return path


def graph_folder(model: LocalModel, settings: Settings, say: Say) -> Path:
    """The folder with the graph that the engine loads; made now, if it has to be. Raises as open_model."""
    throughput = settings.engine.profile == "throughput"
    plain = model.kind != "gguf" or settings.engine.weights != "int8"
    if throughput and plain:
        raise UsageError('the profile "throughput" needs a GGUF file and engine.weights = "int8"; serve this with "exact"')
    if model.kind != "gguf":
        return model.path
    say("converting the model (once)")
    prompts = partial(_calibration_prompts, model, settings)
    smoothing = None if plain else Smoothing(LARGEST_GROUP[settings.engine.profile], throughput, prompts)
    return converted(model.path, model.sha256, settings.engine.weights, home() / "converted", smoothing=smoothing)


def _calibration_prompts(model: LocalModel, settings: Settings) -> list[list[int]]:
    """Every other of the project's prompts, so that the quality can be measured on the rest."""
    tokenizer, template = load_texts(model, settings)
    texts = PROMPTS[::2]
    if template is not None:
        texts = tuple(template.render([{"role": "user", "content": text}]) for text in texts)
    return [tokenizer.encode_prompt(text) for text in texts]
