"""From a model on disk and the settings to a running engine loop."""

from __future__ import annotations

import time
from dataclasses import replace

from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.errors import ModelError
from headway.grammar.compiler import Compiler
from headway.runtime.ladder import is_exact
from headway.runtime.loop import EngineLoop
from headway.runtime.opened import Say, open_model
from headway.runtime.paces import beside_full_house, modes_from
from headway.runtime.served import ServedModel
from headway.runtime.texts import load_texts
from headway.scheduler.blocks import BlockPool
from headway.scheduler.scheduler import Scheduler
from headway.text.tokenizer import Tokenizer


def assemble(model: LocalModel, settings: Settings, say: Say) -> tuple[ServedModel, EngineLoop]:
    """Load and calibrate. `say` is told, in a few words, what is being done. The loop is yet to be started, and to be closed in
    the end. Raises ModelError or UsageError."""
    say("reading the tokenizer")
    tokenizer, template = load_texts(model, settings)
    opened = open_model(model, settings, say)
    engine = opened.engine
    _match_vocabulary(tokenizer, engine.info.vocab_size)
    costs = opened.costs(say)
    info = replace(engine.info, exact=is_exact(engine))
    modes = modes_from(costs, settings.scheduler, settings.modes)
    pool = BlockPool(engine.info.num_blocks, engine.info.block_size)
    scheduler = Scheduler(modes, pool, costs, opened.limits, speculation=settings.scheduler.speculation)
    loop = EngineLoop(engine, scheduler, modes, tokenizer)
    served = ServedModel(
        id=settings.model.id or model.id,
        created=int(time.time()),
        tokenizer=tokenizer,
        template=template,
        modes=modes,
        info=info,
        generator=loop,
        fast_beside_full=beside_full_house(costs, settings.scheduler, modes),
        grammars=Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode),
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
