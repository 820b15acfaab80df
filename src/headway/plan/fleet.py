"""How many GPUs a traffic takes: one pool in which every request has its pace, or a pool for each mode.

The server's own scheduler decides, on a virtual clock whose step times are the plan's (`stepcosts.py`). A pool is `replicas`
copies of the model; requests come at random (Poisson) to each. The number of replicas is the smallest with which every mode
keeps its promise (`Kept`): found with short runs, then confirmed by a long one of `requests` over all replicas.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import ceil
from multiprocessing import get_context

from headway.compare.stats import percentile
from headway.config import ModesSettings, SchedulerSettings
from headway.errors import UsageError
from headway.modes import ModeName, Modes
from headway.plan.stepcosts import BLOCK
from headway.runtime.paces import limits_from, modes_from
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.scheduler import Scheduler
from headway.simulate.arrivals import Lengths, poisson, synthetic
from headway.simulate.result import SimulationResult
from headway.simulate.run import Simulation
from headway.simulate.trace import with_modes

ON_TIME = 0.99
"""Share of a mode's tokens that have to come by their deadline."""
SERVED = 0.99
"""Share of a mode's requests that have to find a place."""
_SEATS = (8, 16, 32, 48, 64, 96, 128, 192, 256)
_STEP_TOKENS = 2048
_PROBE = 500  # requests of a short run
_SHORTEST = 300  # requests that a replica has to serve for its figures to mean anything
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Traffic:
    """rate: requests/s in all. prompt, output: mean tokens; spread: of both, see simulate. fast_share: of the requests."""

    rate: float
    prompt: float
    output: float
    spread: float
    fast_share: float


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of the model. costs: as CostModel.to_dict (it crosses processes); chips: that it takes; paces in tokens/s,
    ttft in seconds, both by mode: standard's and fast's."""

    costs: dict[str, object]
    blocks: int
    chips: int
    paces: tuple[float, float]
    ttft: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a mode got in a pool. Shares of 1; tokens_per_second: the median user's; ttft: seconds, median and
    95th percentile; good: first token in time and pace kept."""

    requests: int
    served: float
    on_time: float
    tokens_per_second: float
    ttft_p50: float
    ttft_p95: float
    good: float

    def keeps(self, ttft: float) -> bool:
        return self.served >= SERVED and self.on_time >= ON_TIME and self.ttft_p95 <= ttft


@dataclass(frozen=True, slots=True)
class Pool:
    """name: "shared", "standard" or "fast". per_replica: requests/s of one; busy: share of the time that it computes."""

    name: str
    replicas: int
    chips: int
    per_replica: float
    busy: float
    modes: dict[str, Kept]


@dataclass(frozen=True, slots=True)
class _Job:
    replica: Replica
    traffic: Traffic
    requests: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Ran:
    busy: float
    seconds: float
    modes: dict[str, tuple[int, int, int, int, int, list[float], list[float]]]
    """asked, served, due, on time, good; tokens/s and seconds to the first token of those served."""


def compare(
    traffic: Traffic,
    replica: Replica,
    requests: int,
    *,
    seed: int = 0,
    jobs: int | None = None,
    tell: Callable[[str], None] = print,
) -> list[Pool]:
    """The shared pool, then the separate ones. requests: of the whole comparison; each pool serves its part of them. Raises
    UsageError if a mode's pace is out of one replica's reach."""
    _check(traffic, requests)
    share = traffic.fast_share
    # A simulation makes no circles of objects: their search would look at every token again and again.
    spawn = get_context("spawn")
    with ProcessPoolExecutor(jobs or os.cpu_count() or 1, mp_context=spawn, initializer=gc.disable) as workers:
        each = requests // 2 if 0 < share < 1 else requests
        wanted = [("shared", traffic, each)]
        if 0 < share < 1:
            standard = replace(traffic, rate=traffic.rate * (1 - share), fast_share=0.0)
            fast = replace(traffic, rate=traffic.rate * share, fast_share=1.0)
            wanted += [("standard", standard, round(each * (1 - share))), ("fast", fast, round(each * share))]
        pools = []
        for name, part, number in wanted:
            tell(f"{name}: finding the number of replicas")
            pools.append(_pool(name, part, replica, number, seed, workers, tell))
    return pools


def modes_of(replica: Replica, traffic: Traffic, seats: int) -> tuple[Modes, SchedulerSettings]:
    """The two modes of a replica with so many seats at standard."""
    scheduler = SchedulerSettings(max_rows=seats, max_step_tokens=_STEP_TOKENS, speculation=False)
    ttft = [1000 * seconds for seconds in replica.ttft]
    waiting = 4 * seats
    modes = ModesSettings.model_validate(
        {
            "standard": {"pace": replica.paces[0], "max_waiting": waiting, "ttft_ms": ttft[0]},
            "fast": {"pace": replica.paces[1], "max_waiting": waiting, "ttft_ms": ttft[1]},
        }
    )
    return modes_from(CostModel.from_dict(replica.costs), scheduler, modes), scheduler


def _pool(
    name: str,
    traffic: Traffic,
    replica: Replica,
    requests: int,
    seed: int,
    workers: ProcessPoolExecutor,
    tell: Callable[[str], None],
) -> Pool:
    rate = _most(traffic, replica, seed, workers)
    replicas = max(1, ceil(traffic.rate / rate - 1e-9))
    while True:
        each = max(_SHORTEST, ceil(requests / replicas))
        part = replace(traffic, rate=traffic.rate / replicas)
        number = max(1, min(replicas, round(requests / each)))
        tell(f"{name}: {number * each:,} requests on {replicas} replicas")
        ran = list(workers.map(_run, [_Job(replica, part, each, seed + 1 + place) for place in range(number)]))
        modes = _sum(ran)
        if _all_kept(modes, replica) or replicas >= 2 * ceil(traffic.rate / rate):
            busy = sum(one.busy for one in ran) / sum(one.seconds for one in ran)
            return Pool(name, replicas, replicas * replica.chips, traffic.rate / replicas, busy, modes)
        replicas += max(1, replicas // 50)


def _most(traffic: Traffic, replica: Replica, seed: int, workers: ProcessPoolExecutor) -> float:
    """Requests/s that one replica serves with every promise kept; runs of several rates at once, closing in."""
    costs = CostModel.from_dict(replica.costs)
    work = traffic.prompt + traffic.output
    # No replica does more: every prompt token in the fullest step, every answer in the fullest batch.
    full, rows = costs.seconds(_STEP_TOKENS) / _STEP_TOKENS, float(_SEATS[-1])
    high = 1 / (traffic.prompt * full + traffic.output * costs.seconds(int(rows)) / rows)
    low = 0.0
    wide = max(2, (os.cpu_count() or 1))
    for _ in range(_ROUNDS):
        rates = [low + (high - low) * (place + 1) / (wide + 1) for place in range(wide)]
        ran = workers.map(_run, [_Job(replica, replace(traffic, rate=rate), _PROBE, seed) for rate in rates])
        good = [_all_kept(_sum([one]), replica) for one in ran]
        best = next((place for place in reversed(range(wide)) if good[place]), None)
        if best is None:
            high = rates[0]
        else:
            low, high = rates[best], rates[best + 1] if best + 1 < wide else high
        if low and high / low < 1.04:
            break
    if not low:
        raise UsageError(
            f"one replica keeps no pace of {replica.paces[0]:.4g} and {replica.paces[1]:.4g} tokens/s with requests of "
            f"{work:.0f} tokens; ask for less, or for more chips to share the model (--tp)"
        )
    return low


def seats_at(costs: CostModel, pace: float, traffic: Traffic) -> int:
    """Rows of a full batch at a pace, the largest of a fixed choice."""
    context = int(traffic.prompt + traffic.output / 2)
    return next((n for n in reversed(_SEATS) if pace * costs.seconds(n, n * context, n) <= 1), _SEATS[0])


def _run(job: _Job) -> _Ran:
    """One replica's share of the traffic."""
    t, replica = job.traffic, job.replica
    costs = CostModel.from_dict(replica.costs)
    modes, settings = modes_of(replica, t, seats_at(costs, replica.paces[0], t))
    scheduler = Scheduler(
        modes,
        BlockPool(replica.blocks, BLOCK),
        CostModel.from_dict(replica.costs),
        limits_from(settings),
        speculation=False,
    )
    arrivals = synthetic(
        poisson(t.rate, job.seed), job.requests, Lengths(t.prompt, t.spread), Lengths(t.output, t.spread), job.seed
    )
    result = Simulation(scheduler, modes, costs, seed=job.seed, downgrade=False).run(
        with_modes(arrivals, t.fast_share, job.seed)
    )
    return _Ran(result.busy, result.seconds, {mode.name.value: _counts(result, mode.name) for mode in modes})


def _counts(result: SimulationResult, name: ModeName) -> tuple[int, int, int, int, int, list[float], list[float]]:
    r = result[name]
    return (r.asked, r.served, r.due, r.on_time, r.good, [1 / tpot for tpot in r.tpot if tpot], list(r.ttft))


def _sum(ran: Iterable[_Ran]) -> dict[str, Kept]:
    """Over replicas; modes that nobody asked for are left out."""
    found: dict[str, Kept] = {}
    ran = list(ran)
    for name in ran[0].modes:
        parts = [one.modes[name] for one in ran]
        asked, served, due, on_time, good = map(sum, zip(*(part[:5] for part in parts), strict=True))
        if not asked:
            continue
        speeds = [value for part in parts for value in part[5]]
        first = [value for part in parts for value in part[6]]
        found[name] = Kept(
            asked,
            served / asked,
            on_time / due if due else 1.0,
            percentile(speeds, 50) or 0.0,
            percentile(first, 50) or 0.0,
            percentile(first, 95) or 0.0,
            good / asked,
        )
    return found


def _all_kept(modes: dict[str, Kept], replica: Replica) -> bool:
    targets = dict(zip((ModeName.STANDARD.value, ModeName.FAST.value), replica.ttft, strict=True))
    return all(kept.keeps(targets[name]) for name, kept in modes.items())


def _check(traffic: Traffic, requests: int) -> None:
    checks: Sequence[tuple[str, float, bool, str]] = (
        ("--rate", traffic.rate, traffic.rate > 0, "above 0"),
        ("--fast-share", traffic.fast_share, 0 <= traffic.fast_share <= 1, "0 to 1"),
        ("--isl", traffic.prompt, traffic.prompt >= 1, "at least 1"),
        ("--osl", traffic.output, traffic.output >= 2, "at least 2"),
        ("--requests", requests, requests >= 2 * _SHORTEST, f"at least {2 * _SHORTEST}"),
    )
    for name, value, good, should in checks:
        if not good:
            raise UsageError(f"{name} has to be {should}, not {value:g}")
