"""What a promised pace is worth: headway's compose beside other ways to put steps together, on the same simulated machine.

    python benchmarks/policies.py [--requests 2000] [--costs FILE] [--fast-share 0.1] [--output-tokens 128] ...

How to read it: every policy serves the same arrivals with the same seats and step times; only who rides in a step differs.
traffic: arrivals, and their rate over the requests/s that fcfs completes when standard requests never run out. fast x: a fast
user's tokens/s over a standard user's (medians). on time: share of tokens that came by the deadline of their pace, which is the
same promise under each policy. TTFT: the median of fast. good/s: requests of both modes served per second with the first token
in time and the pace kept on average. cost x: engine-seconds per fast token over those per standard token.

- pace: headway. Rows of the highest pace ride in every step, the others take turns, in proportion to their pace.
- fcfs: continuous batching with chunked prompts, as vLLM does by default: every row rides in every step.
- priority: the same, but fast prompts go first (vLLM's --scheduling-policy priority).
- split: batches of their own for fast and standard, which take turns; fast has a fixed share of the time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from baselines import Partitioned, anybody, fcfs, one_mode, priority
from output import publish, right_aligned

from headway.compare.stats import percentile
from headway.config import ModesSettings, SchedulerSettings
from headway.modes import ModeName, Modes
from headway.runtime.paces import limits_from, modes_from
from headway.scheduler.blocks import BlockPool
from headway.scheduler.compose import compose
from headway.scheduler.cost import CostModel
from headway.scheduler.scheduler import Composer, Scheduler
from headway.scheduler.sizes import Grid
from headway.simulate.arrivals import Lengths, bursts, poisson, synthetic
from headway.simulate.leap import Steady, same_pace
from headway.simulate.machine import DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, machine_in
from headway.simulate.result import SimulationResult
from headway.simulate.run import Simulation
from headway.simulate.trace import Arrival, with_modes

LOADS = (0.5, 0.8, 1.1)
CV = 3.0
SPLIT = 0.4
SEED = 5
SEATS = SchedulerSettings(fast_rows=4)
# SmolLM2-135M on two cores, as `headway serve` once measured it.
CURVE = {1: 9.9, 4: 9.9, 8: 10.5, 12: 12.1, 16: 14.2, 24: 17.2, 32: 20.7, 48: 26.3, 64: 33.8, 96: 48.1, 128: 61.3, 256: 120.5}
STEP_SECONDS = CostModel(
    [(tokens, milliseconds / 1000) for tokens, milliseconds in CURVE.items()],
    per_context=1.09e-6,
    per_sample=1.4e-4,
    per_change=4.5e-3,
    grid=Grid(((64, 4), (4096, 16))),
)
POLICIES: dict[str, tuple[Callable[[], Composer], Steady]] = {
    "pace": (lambda: compose, same_pace),
    "fcfs": (lambda: fcfs, anybody),
    "priority": (lambda: priority, anybody),
    "split": (lambda: Partitioned(SPLIT), one_mode),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="in each run")
    parser.add_argument("--costs", type=Path, help="step times, as for headway simulate")
    parser.add_argument("--fast-share", type=float, default=0.1)
    parser.add_argument("--prompt-tokens", type=float, default=120)
    parser.add_argument("--output-tokens", type=float, default=128)
    parser.add_argument("--spread", type=float, default=0.5, help="of both lengths, see headway simulate")
    arguments = parser.parse_args()
    bench = Bench(arguments, STEP_SECONDS if arguments.costs is None else machine_in(arguments.costs).costs)
    title = f"Policies, {arguments.fast_share:.0%} fast, {arguments.requests} requests each"
    headings = ("fast x", "fast on time %", "std on time %", "TTFT s", "good /s", "tok/s", "cost x")
    table = right_aligned(title, "traffic", "policy", *headings)
    runs: list[dict[str, Any]] = []
    for kind in ("poisson", "bursty"):
        for load in LOADS:
            for name in POLICIES:
                result = bench.run(name, bench.arrivals(kind, load))
                runs.append({"arrivals": kind, "load": load, "policy": name, **result.to_dict()})
                table.add_row(f"{kind} {load:g}", name, *_row(result))
            table.add_section()
    given = {name: value for name, value in vars(arguments).items() if name != "costs"}
    notes = [
        f"Capacity: {bench.capacity:.2f} requests/s. Promised: "
        + ", ".join(f"{m.name} {m.pace:.1f} tokens/s on {m.max_rows} seats" for m in bench.modes),
        f"Bursty: gaps with a deviation of {CV:g} times their mean. Split: {SPLIT:.0%} of the time for fast.",
    ]
    publish("policies", table, {"load": given, "capacity": round(bench.capacity, 4), "runs": runs}, notes)


class Bench:
    """The machine and the traffic that all policies get."""

    def __init__(self, arguments: argparse.Namespace, costs: CostModel) -> None:
        self._arguments = arguments
        self._costs = costs
        # Nobody is turned away: who waits is seen in the time to the first token.
        self.modes: Modes = modes_from(
            costs, SEATS, ModesSettings.model_validate({"standard": {"max_waiting": 10**6}, "fast": {"max_waiting": 10**6}})
        )
        self.capacity = 1.0
        full = self.run("fcfs", self._traffic(poisson(1000.0, SEED), 0.0))
        self.capacity = full.requests / full.seconds

    def arrivals(self, kind: str, load: float) -> Iterable[Arrival]:
        rate = load * self.capacity
        gap = poisson(rate, SEED) if kind == "poisson" else bursts(rate, CV, SEED)
        return self._traffic(gap, self._arguments.fast_share)

    def run(self, policy: str, arrivals: Iterable[Arrival]) -> SimulationResult:
        composer, steady = POLICIES[policy]
        limits = limits_from(SEATS)
        if policy != "pace":  # the others promise nothing: whoever finds a seat comes in
            limits = replace(limits, headroom=-inf)
        scheduler = Scheduler(
            self.modes,
            BlockPool(DEFAULT_BLOCKS, DEFAULT_BLOCK_SIZE),
            CostModel.from_dict(self._costs.to_dict()),
            limits,
            speculation=False,
            composer=composer(),
        )
        return Simulation(scheduler, self.modes, self._costs, seed=SEED, steady=steady).run(arrivals)

    def _traffic(self, gap: Callable[[], float], fast_share: float) -> Iterable[Arrival]:
        a = self._arguments
        prompt, output = (Lengths(mean, a.spread) for mean in (a.prompt_tokens, a.output_tokens))
        return with_modes(synthetic(gap, a.requests, prompt, output, SEED), fast_share, SEED)


def _row(result: SimulationResult) -> list[str]:
    fast, standard = result.fast, result.standard
    return [
        _figure(result.speed_x(ModeName.FAST), "{:.2f}"),
        _figure(fast.attainment, "{:.1f}", 100),
        _figure(standard.attainment, "{:.1f}", 100),
        _figure(percentile(fast.ttft, 50), "{:.2f}"),
        _figure((result.goodput(ModeName.FAST) or 0.0) + (result.goodput(ModeName.STANDARD) or 0.0), "{:.2f}"),
        _figure(result.total_tokens_per_second, "{:.0f}"),
        _figure(result.cost_x(ModeName.FAST), "{:.2f}"),
    ]


def _figure(value: float | None, form: str, times: int = 1) -> str:
    return "-" if value is None else form.format(times * value)


if __name__ == "__main__":
    main()
