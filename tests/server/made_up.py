"""The real engine loop over a made-up engine, as a server of its own: all of headway but the model. Its arguments are Settings
as JSON and the seconds that a step takes. When it has ended it prints what is left over, which should be nothing."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cases.client import Client

from .live import started

OWN_THREADS = ("headway-engine", "headway-ledger", "headway-responses")
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


@contextmanager
def made_up(config: Mapping[str, Any], seconds: float = 0.001) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    config = {"ledger": {"enabled": False}, **config, "server": {"port": 0, **config.get("server", {})}}
    with started("server.made_up", json.dumps(config), str(seconds)) as running:
        yield running


def main() -> None:
    from runtime.fake_engine import VOCAB, FakeEngine

    from headway.access.allowance import Allowance
    from headway.access.keys import keyring
    from headway.access.quota import Quota
    from headway.config import Settings
    from headway.grammar.compiler import Compiler
    from headway.ledger.book import open_book
    from headway.runtime.loop import EngineLoop
    from headway.runtime.served import ServedModel
    from headway.scheduler.blocks import BlockPool
    from headway.scheduler.cost import CostModel
    from headway.scheduler.limits import Limits
    from headway.scheduler.scheduler import Scheduler
    from headway.server.app import create_app
    from headway.server.lifecycle import bind, run_server
    from headway.server.metrics import Metrics
    from headway.server.responses.database_store import open_store
    from headway.text.template import ChatTemplate

    from .scripted import MODES, ByteTokenizer

    class Tokenizer(ByteTokenizer):
        """The fake engine's vocabulary has more tokens, which are no text."""

        token_bytes = [*ByteTokenizer.token_bytes, *[b""] * (VOCAB - ByteTokenizer.vocab_size)]  # noqa: RUF012
        vocab_size = VOCAB

    class Errors(logging.Handler):
        """Those of the server and of the event loop: tasks that failed with nobody to see it."""

        def __init__(self) -> None:
            super().__init__(logging.ERROR)
            self.seen: list[str] = []

        def emit(self, record: logging.LogRecord) -> None:
            failure = "" if record.exc_info is None else repr(record.exc_info[1])
            self.seen.append(f"{record.name}: {record.getMessage()} {failure}")

    warnings.simplefilter("error", RuntimeWarning)  # numbers that run over, coroutines that nobody awaits
    errors = Errors()
    logging.getLogger().addHandler(errors)
    config, tokenizer = Settings.model_validate_json(sys.argv[1]), Tokenizer()
    engine = FakeEngine(num_blocks=256, block_size=8, context_length=900, seconds=float(sys.argv[2]))
    pool = BlockPool(engine.info.num_blocks, engine.info.block_size)
    costs = CostModel([(1, 0.001), (64, 0.002), (256, 0.006)], 0.0, 0.0)
    loop = EngineLoop(engine, Scheduler(MODES, pool, costs, Limits()), MODES, tokenizer)  # type: ignore[arg-type]
    grammars = Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode)
    template = ChatTemplate(TEMPLATE)
    served = ServedModel("m", 1, tokenizer, template, MODES, engine.info, loop, 1, "made up", grammars)  # type: ignore[arg-type]
    metrics, book = Metrics({"m": MODES}), open_book(config.ledger, config.prices)
    quota = Quota(Allowance(config.limits, config.keys), "memory")
    keys = keyring(config, loopback=True)
    kept = open_store(config.server, config.ledger)
    app = create_app([served], config.server, metrics, keyring=keys, quota=quota, book=book, responses=kept)
    loop.start(metrics.of("m"), [book] if book is not None else [])
    run_server(app, bind(config.server.host, 0), lambda url: print(url, flush=True))
    requests, sockets = app.state.drain.num_requests, app.state.drain.num_sockets
    loop.close()
    if book is not None:
        book.close()
    if kept is not None:
        kept.close()
    pool.check()
    left = {
        "errors": errors.seen,
        "blocks": pool.num_blocks - pool.num_free,
        "live": len(loop._live),
        "requests": requests,
        "sockets": sockets,
        "holds": quota.num_held,
        "open choices": book.open if book is not None else 0,
        "threads": [each.name for each in threading.enumerate() if each.name.startswith(OWN_THREADS)],
    }
    print(json.dumps(left), flush=True)


if __name__ == "__main__":
    main()
