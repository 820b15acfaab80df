"""`headway serve`: from settings to a server that runs until it is told to stop."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.logging import RichHandler

from headway.access.allowance import Allowance
from headway.access.keys import keyring
from headway.calibrate.residency import Residency, kept_residencies, step_bytes
from headway.catalog.home import home
from headway.catalog.resolve import resolve
from headway.config import Settings
from headway.engines.base import EngineInfo
from headway.errors import UsageError
from headway.ledger.book import open_book
from headway.runtime.assemble import assemble
from headway.runtime.draft_model import NUM_DRAFTS
from headway.runtime.served import ServedModel
from headway.server.app import create_app
from headway.server.lifecycle import bind, run_server
from headway.server.metrics import Metrics
from headway.server.record import MachineSeen, Recorder, open_record
from headway.server.responses.database_store import open_store
from headway.server.sockets import is_loopback

if TYPE_CHECKING:
    from headway.access.quota import Quota

SWITCH_SECONDS = 0.0005
"""How long a thread may keep Python's lock while another waits. The default, ten times as long, would let a burst of HTTP work
hold up the next step."""


def serve_command(settings: Settings, *, access_log: bool = False, record: Path | None = None) -> None:
    """Serve until SIGINT or SIGTERM; record: the file that requests are noted in. Raises HeadwayError (one line) for
    what the user can mend; a port in use is found out before the model is loaded."""
    if settings.model.name is None:
        raise UsageError("no model is given; try: headway serve smollm2")
    console = Console(stderr=True)
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=console, show_path=False)])
    sockets = bind(settings.server.host, settings.server.port)
    keys = keyring(settings, loopback=is_loopback(settings.server.host))
    quota = _quota(settings)
    record_file = None if record is None else open_record(record)
    model = resolve(settings.model.name)
    spark = None if settings.model.spark is None else resolve(settings.model.spark)
    draft = None if settings.engine.draft_model is None else resolve(settings.engine.draft_model)
    book = open_book(settings.ledger, settings.prices)
    with console.status("loading") as status:
        (main, *_) = assembled = assemble(model, settings, lambda what: status.update(what), spark, draft)
        status.update("measuring memory")
        weights = kept_residencies(
            [step_bytes(one.served.info) for one in assembled], home() / "ladders", settings.engine.threads
        )
    models = [one.served for one in assembled]
    metrics = Metrics({served.id: served.modes for served in models})
    kept = open_store(settings.server, settings.ledger)
    recorder = None
    if record_file is not None:
        recorder = Recorder(record_file, main.served.modes, MachineSeen(main.loop.costs, main.served.info))
    app = create_app(models, settings.server, metrics, keyring=keys, quota=quota, book=book, recorder=recorder, responses=kept)
    sys.setswitchinterval(SWITCH_SECONDS)
    # What is here now stays: the collector needn't look at it again and again while steps run.
    gc.collect()
    gc.freeze()
    for one in assembled:
        recording = recorder if one is main else None  # a recording is of one model
        one.loop.start(metrics.of(one.served.id), [log for log in (recording, book) if log is not None], recording)
        one.keeper.start()
    try:
        run_server(
            app, sockets, lambda url: print(announcement(models, weights, url, settings), flush=True), access_log=access_log
        )
    finally:
        for one in assembled:
            one.loop.close()
            one.keeper.close()
        for log in (recorder, book, kept):
            if log is not None:
                log.close()


def _quota(settings: Settings) -> Quota | None:
    """None if nothing is limited; the library that counts is loaded only if something is."""
    allowance = Allowance(settings.limits, settings.keys)
    if allowance.unlimited:
        return None
    from headway.access.quota import Quota

    return Quota(allowance, settings.limits.storage)


def guesses(info: EngineInfo, settings: Settings) -> str:
    """In words: where guesses at the next tokens come from."""
    if not settings.scheduler.speculation:
        return "none: speculation is off"
    if settings.engine.draft_model is not None:
        return f"{Path(settings.engine.draft_model).name} guesses {NUM_DRAFTS} tokens ahead, and the text itself"
    if info.num_drafts:
        return f"a draft head guesses {info.num_drafts} tokens ahead, and the text itself"
    if settings.engine.draft_head == "none":
        return "the text itself; engine.draft_head is off"
    return "the text itself; this model has no draft head yet (headway draft-head makes one)"


def announcement(models: Sequence[ServedModel], weights: Sequence[Residency], url: str, settings: Settings) -> str:
    """What is served, the main model first, and at which paces. weights: where those of each model stay."""
    (main, *others), (of_main, *of_others) = models, weights
    lines = [f"headway serves {main.id} on {url}", *_about(main, of_main)]
    lines.append(f"  guesses  {guesses(main.info, settings)}")
    exactly = (
        "to the last bit, whatever else is running"
        if main.info.exact
        else "within rounding (this machine's kernels differ by batch)"
    )
    lines.append(f"  both modes compute the same logits {exactly}")
    for served, stay in zip(others, of_others, strict=True):
        lines += [f"and {served.id}, a smaller model of its own, as mode {served.modes.base.name}", *_about(served, stay)]
    body = f'{{"model": "{main.id}", "service_tier": "fast", "messages": [{{"role": "user", "content": "Hello!"}}]}}'
    lines.append(f"try:  curl {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'")
    return "\n".join(lines)


def _about(served: ServedModel, weights: Residency) -> Iterator[str]:
    """Its size, where its weights stay, and its paces."""
    info, base = served.info, served.modes.base
    yield f"  {info.description}; context {info.context_length:,}, KV cache {info.num_blocks * info.block_size:,} tokens"
    yield f"  {weights}"
    for mode in served.modes:
        beside = "" if mode is base else f", {served.fast_beside_full} beside {base.max_rows} standard ones"
        yield f"  {mode.name:<8} {mode.pace:6.1f} tokens/s promised to each of {mode.max_rows} requests at once{beside}"
    yield f"  by step times {served.step_times}"
