"""From models on disk and the settings to running engine loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.errors import UsageError
from headway.grammar.compiler import Compiler
from headway.modes import Modes
from headway.runtime.device import Device
from headway.runtime.draft_model import open_draft_model
from headway.runtime.kept import Keeper
from headway.runtime.ladder import is_exact
from headway.runtime.loop import EngineLoop
from headway.runtime.opened import OpenModel, Say, open_model
from headway.runtime.paces import beside_full_house, modes_from, modes_of_spark
from headway.runtime.served import ServedModel
from headway.runtime.texts import load_texts, match_vocabulary
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Assembled:
    """The loop and the keeper of the step times are yet to be started, and to be closed in the end, in this order."""

    served: ServedModel
    scheduler: Scheduler
    loop: EngineLoop
    keeper: Keeper


def assemble(
    model: LocalModel, settings: Settings, say: Say, spark: LocalModel | None = None, draft: LocalModel | None = None
) -> list[Assembled]:
    """Load and calibrate a model, and its spark on the same device, if there is one. draft: a smaller model that makes drafts
    for the model. `say` is told, in a few words, what is being done. Raises ModelError or UsageError."""
    device = Device()

    def modes(costs: CostModel) -> Modes:
        available = 1.0 - settings.scheduler.spark_share if spark is not None else 1.0
        return modes_from(costs, settings.scheduler, settings.modes, available)

    main = _assembled(model, settings, say, device, modes, draft)
    if spark is None:
        return [main]
    try:
        beside = _of_spark(spark, settings, say, device, main.served)
    except BaseException:
        main.loop.close()
        raise
    main.scheduler.promises.elsewhere = beside.scheduler.share
    beside.scheduler.promises.elsewhere = main.scheduler.share
    return [main, beside]


def _of_spark(spark: LocalModel, settings: Settings, say: Say, device: Device, main: ServedModel) -> Assembled:
    own = settings.with_overrides({"scheduler.max_rows": settings.modes.spark.max_rows, "scheduler.fast_rows": 1})
    own = own.model_copy(update={"model": own.model.model_copy(update={"id": settings.model.spark_id, "chat_template": None})})
    name = settings.model.spark_id or spark.id
    if name in (main.id, f"{main.id}-fast"):
        raise UsageError(f"the spark would have the name {name}, which the model has already: set model.spark_id")

    def modes(costs: CostModel) -> Modes:
        return modes_of_spark(costs, own.scheduler, settings.modes, main.modes.base.pace)

    return _assembled(spark, own, lambda what: say(f"{what} (spark)"), device, modes)


def _assembled(
    model: LocalModel,
    settings: Settings,
    say: Say,
    device: Device,
    modes_of: Callable[[CostModel], Modes],
    draft: LocalModel | None = None,
) -> Assembled:
    say("reading the tokenizer")
    tokenizer, template = load_texts(model, settings)
    opened = open_model(model, settings, say)
    engine = opened.engine
    match_vocabulary(tokenizer, engine.info.vocab_size)
    times = opened.step_times(say)
    costs = times.costs
    info = replace(engine.info, exact=is_exact(engine))
    modes = modes_of(costs)
    scheduler = _scheduler(opened, costs, modes, settings)
    guesser = None
    if draft is not None and settings.scheduler.speculation:
        guesser = open_draft_model(draft, tokenizer, settings, lambda what: say(f"{what} (draft model)"))
    loop = EngineLoop(engine, scheduler, modes, tokenizer, device, guesser)
    served = ServedModel(
        id=settings.model.id or model.id,
        created=int(time.time()),
        tokenizer=tokenizer,
        template=template,
        modes=modes,
        info=info,
        generator=loop,
        fast_beside_full=beside_full_house(costs, settings.scheduler, modes) if modes.fast is not None else 0,
        step_times=times.about,
        grammars=Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode),
    )
    return Assembled(served, scheduler, loop, opened.keeper(costs))


def _scheduler(opened: OpenModel, costs: CostModel, modes: Modes, settings: Settings) -> Scheduler:
    info = opened.engine.info
    pool = BlockPool(info.num_blocks, info.block_size)
    return Scheduler(modes, pool, costs, opened.limits, speculation=settings.scheduler.speculation)
