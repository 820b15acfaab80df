"""From a model on disk and the settings to a running engine loop."""

from __future__ import annotations

import time
from dataclasses import replace

from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.grammar.compiler import Compiler
from headway.runtime.kept import Keeper
from headway.runtime.ladder import is_exact
from headway.runtime.loop import EngineLoop
from headway.runtime.opened import Say, open_model
from headway.runtime.paces import beside_full_house, modes_from
from headway.runtime.served import ServedModel
from headway.runtime.texts import load_texts, match_vocabulary
from headway.scheduler.blocks import BlockPool
from headway.scheduler.scheduler import Scheduler


def assemble(model: LocalModel, settings: Settings, say: Say) -> tuple[ServedModel, EngineLoop, Keeper]:
    """Load and calibrate. `say` is told, in a few words, what is being done. The loop and the keeper of the step times are yet
    to be started, and to be closed in the end, in this order. Raises ModelError or UsageError."""
    say("reading the tokenizer")
    tokenizer, template = load_texts(model, settings)
    opened = open_model(model, settings, say)
    engine = opened.engine
    match_vocabulary(tokenizer, engine.info.vocab_size)
    times = opened.step_times(say)
    costs = times.costs
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
        step_times=times.about,
        grammars=Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode),
    )
    return served, loop, opened.keeper(costs)
