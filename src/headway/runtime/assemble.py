"""From a model on disk and the settings to a running engine loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headway.catalog.home import home
from headway.catalog.local import LocalModel
from headway.compare.prompts import PROMPTS
from headway.config import Settings
from headway.engines import open_engine
from headway.engines.convert import converted
from headway.errors import ModelError, UsageError
from headway.runtime.ladder import cost_model, is_exact
from headway.runtime.loop import EngineLoop
from headway.runtime.paces import modes_from
from headway.runtime.served import ServedModel
from headway.scheduler.blocks import BlockPool
from headway.scheduler.compose import Limits
from headway.scheduler.scheduler import Scheduler
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Tokenizer

Say = Callable[[str], None]


def assemble(model: LocalModel, settings: Settings, say: Say) -> tuple[ServedModel, EngineLoop]:
    """Load and calibrate. `say` is told, in a few words, what is being done. The loop is yet to be started, and to be closed in
    the end. Raises ModelError or UsageError."""
    say("reading the tokenizer")
    tokenizer = Tokenizer.load(model.path)
    template = _template(model, settings, tokenizer)
    folder = _folder(model, settings, tokenizer, template, say)
    say("loading the model")
    seats = settings.scheduler.max_rows + settings.scheduler.fast_rows
    engine = open_engine(folder, settings.engine, model.context_length, seats * model.context_length)
    _match_vocabulary(tokenizer, engine.info.vocab_size)
    say("measuring step times")
    costs = cost_model(
        engine,
        max(settings.scheduler.max_step_tokens, seats),
        home() / "ladders",
        identity=f"{folder.name} {model.sha256} {engine.info.description} {settings.scheduler.max_step_tokens} {seats}",
    )
    info = replace(engine.info, exact=is_exact(engine))
    modes = modes_from(costs, settings.scheduler, settings.modes)
    limits = Limits(
        max_step_tokens=max(settings.scheduler.max_step_tokens, seats),
        efficiency_floor=settings.scheduler.efficiency_floor,
    )
    pool = BlockPool(engine.info.num_blocks, engine.info.block_size)
    scheduler = Scheduler(modes, pool, costs, limits, speculation=settings.scheduler.speculation)
    loop = EngineLoop(engine, scheduler, modes, tokenizer)
    served = ServedModel(
        id=settings.model.id or model.id,
        created=int(time.time()),
        tokenizer=tokenizer,
        template=template,
        modes=modes,
        info=info,
        generator=loop,
    )
    return served, loop


def _folder(model: LocalModel, settings: Settings, tokenizer: Tokenizer, template: ChatTemplate | None, say: Say) -> Path:
    """The folder with the graph that the engine loads."""
    calibration = None
    if settings.engine.profile == "throughput":
        if model.kind != "gguf" or settings.engine.weights != "int8":
            raise UsageError('the profile "throughput" needs a GGUF file and engine.weights = "int8"; serve this with "exact"')
        # Every other one, so that the quality can be measured on the rest.
        calibration = [tokenizer.encode_prompt(_as_prompt(text, template)) for text in PROMPTS[::2]]
    elif model.kind != "gguf":
        return model.path
    say("converting the model (once)" if calibration is None else "converting and calibrating the model (once)")
    return converted(model.path, model.sha256, settings.engine.weights, home() / "converted", calibration=calibration)


def _as_prompt(text: str, template: ChatTemplate | None) -> str:
    return text if template is None else template.render([{"role": "user", "content": text}])


def _match_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Models may have more outputs than words (padding to a round number); those stand for no text. Raises ModelError."""
    missing = vocab_size - len(tokenizer.token_bytes)
    if missing < 0:
        raise ModelError(
            f"the tokenizer has {len(tokenizer.token_bytes)} tokens, the model only {vocab_size}: they don't belong together"
        )
    tokenizer.token_bytes.extend([b""] * missing)


def _template(model: LocalModel, settings: Settings, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The template given by the settings, else the model's own; None if there is none at all."""
    path = settings.model.chat_template
    source = model.chat_template or tokenizer.chat_template
    if path is not None:
        source = _read(path)
    return ChatTemplate(source, bos=tokenizer.bos, eos=tokenizer.eos) if source else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the chat template {path} can't be read: {error}") from None
