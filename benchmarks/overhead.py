"""How much of the time the engine computes when clients keep the server full.

    python benchmarks/overhead.py [--model smollm2] [--streams 32] [--rounds 3] [--seconds 15]

How to read it: `engine busy` is the share of wall time in which the device computed, by the server's own counter, with
streams that go through the real HTTP API and a client on the same cores; the rest is what scheduling, sampling,
detokenizing, HTTP and the client cost where they aren't hidden behind a step. `outside` is that rest per output token.
`client` is the CPU time of the measuring client per output token (it is part of what the cores had to do).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from output import publish, right_aligned

from headway.compare.client import Client
from headway.compare.commands import run_async
from headway.compare.embedded import running, serve_command
from headway.compare.endpoint import engine_busy_seconds, find_maker, find_model
from headway.compare.load import ClosedLoop
from headway.compare.progress import Silent
from headway.compare.run import arrivals
from headway.compare.stats import Window, tokens_in
from headway.errors import HeadwayError
from headway.modes import ModeName

WARM_UP_SECONDS = 8.0
MAX_TOKENS = 96


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of one window, and the tokens that came in it."""

    seconds: float
    busy: float
    client_cpu: float
    tokens: float

    @property
    def outside_us(self) -> float:
        return 1e6 * (self.seconds - self.busy) / self.tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    arguments = parser.parse_args()
    with running(serve_command(arguments.model, arguments.streams)) as server:
        url = server.wait_ready(Silent())
        rounds = run_async(measure(url, arguments.streams, arguments.rounds, arguments.seconds))
    table = right_aligned(
        f"{arguments.streams} streams through HTTP", "round", "engine busy", "tokens/s", "outside us/token", "client us/token"
    )
    for number, each in enumerate(rounds, start=1):
        table.add_row(
            str(number),
            f"{each.busy / each.seconds:.1%}",
            f"{each.tokens / each.seconds:.0f}",
            f"{each.outside_us:.0f}",
            f"{1e6 * each.client_cpu / each.tokens:.0f}",
        )
    figures = {
        "model": Path(arguments.model).name,
        "streams": arguments.streams,
        "max_tokens": MAX_TOKENS,
        "engine_busy": round(median(each.busy / each.seconds for each in rounds), 4),
        "tokens_per_second": round(median(each.tokens / each.seconds for each in rounds), 2),
        "outside_us_per_token": round(median(each.outside_us for each in rounds), 1),
        "client_us_per_token": round(median(1e6 * each.client_cpu / each.tokens for each in rounds), 1),
        "rounds": [{"engine_busy": round(each.busy / each.seconds, 4)} for each in rounds],
    }
    publish("overhead", table, figures, [f"Engine busy: {figures['engine_busy']:.1%} (median of the rounds)."])


async def measure(url: str, streams: int, rounds: int, seconds: float) -> list[Round]:
    """Windows one after the other under one load. Raises HeadwayError if the server has no counter or sends no tokens."""
    async with Client(url) as client:
        maker = await find_maker(client, await find_model(client, None))
        load = ClosedLoop(client, arrivals(maker, ModeName.STANDARD, MAX_TOKENS))
        load.start(streams, ramp_seconds=WARM_UP_SECONDS / 2)
        await asyncio.sleep(WARM_UP_SECONDS)
        edges = [await edge(client)]
        for _ in range(rounds):
            await asyncio.sleep(seconds)
            edges.append(await edge(client))
        await load.stop(grace_seconds=20.0)
    results = []
    for (start, busy_before, cpu_before), (end, busy_after, cpu_after) in pairwise(edges):
        tokens = tokens_in(load.records, Window(start, end))
        if not tokens:
            raise HeadwayError(f"{url} sent no tokens")
        results.append(Round(end - start, busy_after - busy_before, cpu_after - cpu_before, tokens))
    return results


async def edge(client: Client) -> tuple[float, float, float]:
    """The clock, the engine's busy seconds and this process's CPU seconds, now."""
    busy = await engine_busy_seconds(client)
    if busy is None:
        raise HeadwayError(f"{client.url} has no counter of engine time")
    return client.clock(), busy, time.process_time()


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
