"""From a model on disk and the settings to a running engine loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headway.catalog.home import home
from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.engines import open_engine
from headway.engines.convert import converted
from headway.errors import ModelError, UsageError
from headway.runtime.ladder import cost_model, is_exact
from headway.runtime.loop import EngineLoop
from headway.runtime.paces import limits_from, modes_from
from headway.runtime.served import ServedModel
from headway.scheduler.blocks import BlockPool
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
    folder = model.path
    if model.kind == "gguf":
        say("converting the model (once)")
        folder = converted(model.path, model.sha256, settings.engine.weights, home() / "converted")
    say("loading the model")
    seats = settings.scheduler.max_rows + settings.scheduler.fast_rows
    engine = open_engine(folder, settings.engine, model.context_length, seats * model.context_length)
    _match_vocabulary(tokenizer, engine.info.vocab_size)
    say("measuring step times")
    limits = limits_from(settings.scheduler)
    costs = cost_model(
        engine,
        limits.max_step_tokens,
        home() / "ladders",
        identity=f"{folder.name} {model.sha256} {engine.info.description} {settings.scheduler.max_step_tokens} {seats}",
    )
    info = replace(engine.info, exact=is_exact(engine))
    modes = modes_from(costs, settings.scheduler, settings.modes)
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
