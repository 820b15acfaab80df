"""`headway serve`: from settings to a server that runs until it is told to stop."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.logging import RichHandler

from headway.access.allowance import Allowance
from headway.access.keys import keyring
from headway.catalog.resolve import resolve
from headway.config import Settings
from headway.engines.base import EngineInfo
from headway.errors import UsageError
from headway.ledger.book import open_book
from headway.modes import ModeName
from headway.runtime.assemble import assemble
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
    book = open_book(settings.ledger, settings.prices)
    with console.status("loading") as status:
        (main, *_) = assembled = assemble(model, settings, lambda what: status.update(what), spark)
    served, loop = main.served, main.loop
    metrics = Metrics(served.modes)
    kept = open_store(settings.server, settings.ledger)
    recorder = None
    if record_file is not None:
        recorder = Recorder(record_file, served.modes, MachineSeen(loop.costs, served.info))
    app = create_app(served, settings.server, metrics, keyring=keys, quota=quota, book=book, recorder=recorder, responses=kept)
    sys.setswitchinterval(SWITCH_SECONDS)
    # What is here now stays: the collector needn't look at it again and again while steps run.
    gc.collect()
    gc.freeze()
    for one in assembled:
        recording = recorder if one is main else None  # a recording is of one model
        one.loop.start(metrics, [log for log in (recording, book) if log is not None], recording)
        one.keeper.start()
    try:
        run_server(app, sockets, lambda url: _announce(served, url, guesses(served.info, settings)), access_log=access_log)
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
    if info.num_drafts:
        return f"a draft head guesses {info.num_drafts} tokens ahead, and the text itself"
    if settings.engine.draft_head == "none":
        return "the text itself; engine.draft_head is off"
    return "the text itself; this model has no draft head yet (headway draft-head makes one)"


def _announce(served: ServedModel, url: str, drafts: str) -> None:
    info = served.info
    print(f"headway serves {served.id} on {url}")
    print(f"  {info.description}; context {info.context_length:,}, KV cache {info.num_blocks * info.block_size:,} tokens")
    standard, fast = served.modes.base, served.modes[ModeName.FAST]
    print(f"  standard {standard.pace:6.1f} tokens/s promised to each of {standard.max_rows} requests at once")
    beside = f"{served.fast_beside_full} beside {standard.max_rows} standard ones"
    print(f"  fast     {fast.pace:6.1f} tokens/s promised to each of {fast.max_rows} requests at once, {beside}")
    print(f"  by step times {served.step_times}")
    print(f"  guesses  {drafts}")
    exactly = (
        "to the last bit, whatever else is running"
        if info.exact
        else "within rounding (this machine's kernels differ by batch)"
    )
    print(f"  both modes compute the same logits {exactly}")
    body = f'{{"model": "{served.id}", "service_tier": "fast", "messages": [{{"role": "user", "content": "Hello!"}}]}}'
    print(f"try:  curl {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'", flush=True)
