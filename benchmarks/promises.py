"""Whether promises are kept: a mix of modes, overload, a long prompt, and the second turn of a chat.

    python benchmarks/promises.py [--model smollm2] [--only mix overload long turn] [--overload-seconds 120]

How to read it: "mix" has 32 standard streams and 0, 1, 2, 4 fast ones in windows that take turns: a fast stream's tokens/s over
a standard one's, the share of fast tokens on time (by the server's own account), and the total over that without fast streams.
"overload" sends three times what the machine can do, a tenth of it as fast (see overload.py). "long" sends a prompt of 6,000
tokens at standard while a fast stream runs: the 99th percentile of the fast stream's gaps between tokens, in periods of its
pace. "turn" asks a second question about a long text, once more with the other mode: time to the first token of both turns.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
from statistics import median
from typing import Any

from output import figure, publish, right_aligned
from overload import overload
from rich.table import Table

from headway.compare.client import Client
from headway.compare.commands import run_async
from headway.compare.embedded import running, serve_command
from headway.compare.endpoint import find_maker, find_model
from headway.compare.load import ClosedLoop
from headway.compare.progress import Silent
from headway.compare.prompts import PROMPTS
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker
from headway.compare.run import arrivals
from headway.compare.stats import Window, itl, percentile, summarize, tokens_in, within
from headway.errors import HeadwayError
from headway.modes import SPEEDS, ModeName

PARTS = ("mix", "overload", "long", "turn")
FAST_STREAMS = (0, 1, 2, 4)
WINDOW_SECONDS, SETTLE_SECONDS, ROUNDS = 10.0, 2.0, 2
LONG_TOKENS = 6_000


class Bench:
    """A running server and what has been found out about it."""

    def __init__(self, client: Client, maker: RequestMaker, streams: int) -> None:
        self.client = client
        self.maker = maker
        self.streams = streams
        self.notes: list[str] = []

    async def mix(self) -> tuple[Table, dict[str, Any]]:
        standard = ClosedLoop(self.client, arrivals(self.maker, ModeName.STANDARD, 96))
        standard.start(self.streams, ramp_seconds=3.0)
        await asyncio.sleep(8.0)
        windows: dict[int, list[Window]] = {n: [] for n in FAST_STREAMS}
        fast: dict[int, list[RequestRecord]] = {n: [] for n in FAST_STREAMS}
        for _, count in itertools.product(range(ROUNDS), FAST_STREAMS):
            loop = ClosedLoop(self.client, arrivals(self.maker, ModeName.FAST, 96))
            if count:
                loop.start(count)
            await asyncio.sleep(SETTLE_SECONDS)
            start = self.client.clock()
            await asyncio.sleep(WINDOW_SECONDS)
            windows[count].append(Window(start, self.client.clock()))
            await loop.stop(20.0)
            fast[count] += loop.records
        await standard.stop(0.0)
        table = right_aligned(
            f"{self.streams} standard streams and some fast ones",
            "fast streams",
            "standard tok/s",
            "fast tok/s",
            "fast over standard",
            "fast on time",
            "served fast",
            "total tok/s",
            "kept",
        )
        figures: dict[str, Any] = {}
        alone = 0.0
        for count in FAST_STREAMS:
            everything = [*standard.records, *(r for records in fast.values() for r in records)]
            total = median(tokens_in(everything, w) or 0.0 for w in windows[count]) / WINDOW_SECONDS
            alone = alone or total
            slow = summarize(within(standard.records, windows[count])).tokens_per_second
            asked = [r for r in fast[count] if r.outcome != "cut"]
            quick = summarize([r for r in asked if r.served_fast])
            ratio = quick.tokens_per_second / slow if quick.tokens_per_second and slow else None
            served = sum(r.served_fast for r in asked)
            figures[str(count)] = {
                "standard_tokens_per_second": slow,
                "fast_tokens_per_second": quick.tokens_per_second,
                "speed_x": ratio,
                "fast_attainment": quick.attainment,
                "fast_asked": len(asked),
                "fast_served": served,
                "total_tokens_per_second": total,
                "kept": total / alone,
            }
            table.add_row(
                str(count),
                figure(slow),
                figure(quick.tokens_per_second),
                figure(ratio, "{:.2f}x"),
                figure(quick.attainment, "{:.1%}"),
                f"{served} of {len(asked)}",
                figure(total, "{:.0f}"),
                f"{total / alone:.0%}",
            )
        return table, figures

    async def long_prompt(self) -> tuple[Table, dict[str, Any]]:
        words = " ".join(f"item {n} costs {n * 7 % 100} coins" for n in range(1200))
        gaps: dict[str, list[float]] = {"alone": [], "beside a long prompt": []}
        pace, took = 0.0, []
        for number in range(2):
            for name in gaps:
                task = self.maker.chat(f"Write a long story, number {number}{len(name)}.", ModeName.FAST, 400, temperature=0.0)
                record = self.client.record(task)
                running = asyncio.create_task(self.client.send(task, record))
                while len(record.chunk_times) < 20 and not running.done():
                    await asyncio.sleep(0.02)
                if name != "alone":
                    text = f"{number}. {words}"[: int(LONG_TOKENS * 2.75)]
                    long = await self.client.send(self.maker.chat(text, ModeName.STANDARD, 2, temperature=0.0))
                    if not long.succeeded:
                        raise HeadwayError(f"the long prompt failed: {long.reason}")
                    took.append((long.prompt_tokens or 0, long.ttft or 0.0))
                    ended = long.finished or self.client.clock()
                    gaps[name] += itl_between(record, long.started, ended)
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                else:
                    await running
                    gaps[name] += itl(record)[20:]
                    pace = record.served_by.pace or 0.0 if record.served_by else 0.0
        table = right_aligned("Gaps between the tokens of a fast stream", "", "p50 ms", "p99 ms", "p99 in periods")
        figures: dict[str, Any] = {"pace": pace, "long_prompts": [{"tokens": n, "ttft_s": round(s, 2)} for n, s in took]}
        for name, values in gaps.items():
            p50, p99 = percentile(values, 50) or 0.0, percentile(values, 99) or 0.0
            figures[name] = {"p50_ms": 1000 * p50, "p99_ms": 1000 * p99, "p99_periods": p99 * pace}
            table.add_row(name, f"{1000 * p50:.1f}", f"{1000 * p99:.1f}", f"{p99 * pace:.2f}")
        self.notes.append("Long prompts: " + ", ".join(f"{n} tokens, first token after {s:.1f} s" for n, s in took))
        return table, figures

    async def second_turn(self) -> tuple[Table, dict[str, Any]]:
        table = right_aligned(
            "Time to first token in a long chat, seconds", "modes", "first turn", "second turn", "first/second"
        )
        figures: dict[str, Any] = {}
        text = " ".join(PROMPTS)
        for first, second in itertools.product(SPEEDS, SPEEDS):
            ratios, pairs = [], []
            for number in range(3):
                opening = {"role": "user", "content": f"{first} {second} {number}. {text}"[:9000]}
                one = await self.client.send(self.maker.chat([opening], first, 24, temperature=0.0, keep_text=True))
                chat = [opening, {"role": "assistant", "content": one.text}, {"role": "user", "content": "And what else?"}]
                two = await self.client.send(self.maker.chat(chat, second, 8, temperature=0.0))
                pairs.append((one.ttft or 0.0, two.ttft or 1.0))
                ratios.append(pairs[-1][0] / pairs[-1][1])
            name = f"{first}, then {second}"
            a, b = median(p[0] for p in pairs), median(p[1] for p in pairs)
            figures[name] = {"first_s": a, "second_s": b, "ratio": median(ratios)}
            table.add_row(name, f"{a:.2f}", f"{b:.3f}", f"{median(ratios):.1f}x")
        return table, figures


def itl_between(record: RequestRecord, start: float, end: float) -> list[float]:
    """Gaps between the chunks that came in a time."""
    times = [t for t in record.chunk_times if start <= t <= end]
    return [b - a for a, b in itertools.pairwise(times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--overload-seconds", type=float, default=120.0)
    arguments = parser.parse_args()
    with running(serve_command(arguments.model, arguments.streams)) as server:
        run_async(measure(server.wait_ready(Silent()), arguments))


async def measure(url: str, arguments: argparse.Namespace) -> None:
    async with Client(url) as client:
        maker = await find_maker(client, await find_model(client, None))
        bench = Bench(client, maker, arguments.streams)
        parts = {
            "mix": bench.mix,
            "overload": lambda: overload(client, maker, arguments.streams, arguments.overload_seconds, bench.notes),
            "long": bench.long_prompt,
            "turn": bench.second_turn,
        }
        for name in arguments.only:
            bench.notes.clear()
            table, figures = await parts[name]()
            publish(f"promises-{name}", table, {"streams": arguments.streams, "figures": figures}, bench.notes)


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
