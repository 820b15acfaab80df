"""The scripted server as a process of its own, for what needs sockets and signals. Its arguments are a Script and Settings as
JSON, and the numbers of seats: of all, and of fast ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cases.client import Client

TESTS = Path(__file__).parents[1]


@contextmanager
def live(
    script: Mapping[str, Any],
    seats: int = 1000,
    fast_seats: int = 1000,
    config: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A running scripted server, which refuses with a 429 what finds no seat, and its client. settings: of [server]; config:
    of the other sections, by default without a ledger."""
    config = {"server": {"port": 0, **settings}, "ledger": {"enabled": False}, **(config or {})}
    with started("server.live", json.dumps(script), json.dumps(config), str(seats), str(fast_seats)) as running:
        yield running


@contextmanager
def started(module: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A module of the tests that prints the URL of its server, which serves the model "m"."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, Client(process.stdout.readline().strip(), "m")
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    from headway.config import Settings
    from headway.errors import RequestError
    from headway.modes import ModeName
    from headway.runtime.api import GenerateRequest
    from headway.server.lifecycle import bind, run_server
    from server.scripted import Script, World

    config = Settings.model_validate_json(sys.argv[2])
    world = World(Script(**json.loads(sys.argv[1])), config=config, context=100_000)
    generator, seats, fast_seats = world.generator, int(sys.argv[3]), int(sys.argv[4])
    full = RequestError(429, "all seats are taken", retry_after=0.2)

    def refuse(request: GenerateRequest) -> RequestError | None:
        most = min(seats, fast_seats) if request.mode is ModeName.FAST else seats
        return full if len(generator.running) >= most else None

    generator.refuse = refuse
    run_server(world.app, bind(config.server.host, 0), lambda url: print(url, flush=True))
    if world.book is not None:
        world.book.close()
    print("ended", flush=True)


if __name__ == "__main__":
    main()
