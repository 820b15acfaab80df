"""What the scheduler costs in a step, with 256 requests on board.

    python benchmarks/compose.py [--requests 256] [--fast 8] [--steps 2000]

How to read it: microseconds of real time for each call while a simulated stretch of traffic runs (the clock moves by the cost
model's seconds, so nothing waits). `compose` is the pure choice of a step; `plan` is compose with seats and KV blocks;
`complete` takes the tokens and charges the seconds. Beside a step of some 50 ms, 500 us is one per cent.
"""

from __future__ import annotations

import argparse
import random
import time
from math import inf
from statistics import median

from output import publish, right_aligned

from headway.compare.stats import percentile
from headway.modes import Mode, ModeName, Modes
from headway.scheduler.blocks import BlockPool
from headway.scheduler.compose import compose
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.sizes import StepSizes

WARM_UP_STEPS = 200
VOCABULARY = 49_152
STEP_SECONDS = [(1, 0.012), (4, 0.016), (16, 0.031), (32, 0.047), (64, 0.075), (128, 0.117), (256, 0.2)]
PACES = {ModeName.STANDARD: 5.0, ModeName.FAST: 40.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--fast", type=int, default=8, help="how many of them are fast")
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    timings = simulate(arguments.requests, arguments.fast, arguments.steps)
    table = right_aligned(f"Scheduler, {arguments.requests} requests, {arguments.fast} fast", "call", "median us", "p99 us")
    figures = {}
    for name, values in timings.items():
        micros = [1e6 * value for value in values]
        figures[name] = {"median_us": round(median(micros), 1), "p99_us": round(percentile(micros, 99) or 0.0, 1)}
        table.add_row(name, f"{figures[name]['median_us']:.0f}", f"{figures[name]['p99_us']:.0f}")
    load = {"requests": arguments.requests, "fast": arguments.fast, "steps": arguments.steps}
    publish("compose", table, load | {"calls": figures}, [])


def simulate(requests: int, fast: int, steps: int) -> dict[str, list[float]]:
    """Seconds of each call, step by step, warm-up left out. A request that ends is followed by a new one."""
    randomness = random.Random(7)
    scheduler = Scheduler(
        Modes(
            Mode(ModeName.STANDARD, PACES[ModeName.STANDARD], requests - fast, requests, ttft_target=2.0),
            Mode(ModeName.FAST, PACES[ModeName.FAST], fast, requests, ttft_target=0.5),
        ),
        BlockPool(num_blocks=32 * requests, block_size=32),
        CostModel(STEP_SECONDS, per_context=1e-7, per_sample=1e-5),
        Limits(headroom=-inf),  # all of them are to be seated, whatever could be promised
    )
    now = 0.0

    def add(number: int, mode: ModeName) -> None:
        prompt = [randomness.randrange(VOCABULARY) for _ in range(randomness.randrange(20, 300))]
        length = randomness.randrange(32, 512)
        scheduler.add(Request(str(number), mode, PACES[mode], now, now + 2.0, prompt, length), now)

    for number in range(requests):
        add(number, ModeName.FAST if number < fast else ModeName.STANDARD)
    added = requests
    timings: dict[str, list[float]] = {"compose": [], "plan": [], "complete": []}
    for number in range(WARM_UP_STEPS + steps):
        times = [time.perf_counter()]
        compose(scheduler.running(), scheduler.costs, StepSizes(scheduler.costs), now, scheduler.limits)
        times.append(time.perf_counter())
        step = scheduler.plan(now)
        times.append(time.perf_counter())
        if step is None:
            raise RuntimeError("the scheduler had nothing to do")
        seconds = step.predicted * randomness.uniform(0.95, 1.1)
        now += seconds
        tokens = [[randomness.randrange(VOCABULARY)] for row in step.rows if row.samples]
        begun = time.perf_counter()
        received = scheduler.complete(step, tokens, now, seconds)
        complete_seconds = time.perf_counter() - begun
        if number >= WARM_UP_STEPS:
            timings["compose"].append(times[1] - times[0])
            timings["plan"].append(times[2] - times[1])
            timings["complete"].append(complete_seconds)
        for each in received:
            if each.ended:
                add(added, each.request.mode)
                added += 1
    return timings


if __name__ == "__main__":
    main()
