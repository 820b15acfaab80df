"""`headway plan M --gpu G --fleet`: one pool for all speeds beside a pool for each, in GPUs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headway.compare.report import STDOUT, UNKNOWN, check_json_path, write_json
from headway.errors import UsageError
from headway.plan.chip import Chip, chip
from headway.plan.curve import STANDARD, does_not_fit
from headway.plan.fleet import Pool, Replica, Traffic, compare
from headway.plan.machine import Engine, Layout
from headway.plan.source import in_precision, read_model
from headway.plan.stepcosts import cost_model, kv_blocks


@dataclass(frozen=True, slots=True)
class FleetAsked:
    """As `commands.Asked`, and the traffic: requests/s, the share of fast ones, the spread of lengths, seconds to the first
    token (95% of requests) at standard and fast, and how many requests the comparison serves in all."""

    model: str
    gpu: str
    rate: float
    fast_share: float = 0.1
    isl: int = 1024
    osl: int = 256
    spread: float = 0.5
    tp: int = 1
    speed: float = 2.5
    standard: float | None = None
    ttft: tuple[float, float] = (2.0, 1.0)
    requests: int = 10_000
    precision: str | None = None
    engine: str = "vllm"
    price: float | None = None
    seed: int = 0


def fleet_command(asked: FleetAsked, json_path: Path | None = None) -> None:
    """Print the table, and write JSON if a path is given (`-` = stdout, the table to stderr). Raises HeadwayError."""
    check_json_path(json_path)
    console = Console(stderr=True)
    begun = time.perf_counter()
    one = chip(asked.gpu)
    replica = replica_of(asked, one)
    traffic = Traffic(asked.rate, asked.isl, asked.osl, asked.spread, asked.fast_share)
    with console.status("") as status:
        pools = compare(traffic, replica, asked.requests, seed=asked.seed, tell=status.update)
    seconds = time.perf_counter() - begun
    price = asked.price or (one.price.hourly if one.price else None)
    Console(stderr=json_path == STDOUT).print(as_table(pools, replica, price, seconds))
    if json_path is not None:
        write_json(as_json(asked, pools, price, seconds), json_path)


def replica_of(asked: FleetAsked, one: Chip) -> Replica:
    """One copy of the model on `asked.tp` chips. Raises UsageError if it doesn't fit there."""
    if asked.tp < 1 or asked.speed <= 1 or min(asked.ttft) <= 0:
        raise UsageError("--tp has to be at least 1, --speed above 1, and seconds to the first token above 0")
    shape, machine, layout = in_precision(read_model(asked.model), asked.precision), one.machine(), Layout(asked.tp)
    blocks = kv_blocks(shape, machine, layout)
    if not blocks:
        raise UsageError(does_not_fit(shape, machine, [asked.tp], asked.isl + asked.osl))
    pace = asked.standard or STANDARD
    costs = cost_model(shape, machine, layout, Engine(asked.engine)).to_dict()
    return Replica(costs, blocks, layout.chips, (pace, asked.speed * pace), asked.ttft)


def as_table(pools: Sequence[Pool], replica: Replica, price: float | None, seconds: float) -> Table:
    number = sum(kept.requests for pool in pools for kept in pool.modes.values())
    table = Table(
        title=f"Paces of {replica.paces[0]:g} and {replica.paces[1]:g} tokens/s",
        caption=f"{number:,} requests simulated, and short runs to find the GPUs, in {seconds:.0f} s",
    )
    table.add_column("pool")
    table.add_column("mode")
    for heading in ("GPUs", "$/h", "busy", "served", "tokens on time", "tokens/s per user", "TTFT p50", "TTFT p95"):
        table.add_column(heading, justify="right")
    for pool in pools:
        for place, (mode, kept) in enumerate(pool.modes.items()):
            shown = [f"{pool.chips}", f"{price * pool.chips:,.0f}" if price else UNKNOWN, f"{pool.busy:.0%}"]
            table.add_row(
                "" if place else pool.name,
                mode,
                *(["", "", ""] if place else shown),
                f"{kept.served:.1%}",
                f"{kept.on_time:.1%}",
                f"{kept.tokens_per_second:.0f}",
                f"{kept.ttft_p50:.2f} s",
                f"{kept.ttft_p95:.2f} s",
            )
    apart = sum(pool.chips for pool in pools[1:])
    if apart:
        table.add_section()
        table.add_row("separate", "both", f"{apart}", f"{price * apart:,.0f}" if price else UNKNOWN, *[""] * 6)
    return table


def as_json(asked: FleetAsked, pools: Sequence[Pool], price: float | None, seconds: float) -> dict[str, Any]:
    return {
        "asked": asdict(asked) | {"model": Path(asked.model).name},
        "price_per_chip_hour": price,
        "pools": [asdict(pool) for pool in pools],
        "chips": {"shared": pools[0].chips, "separate": sum(pool.chips for pool in pools[1:]) or None},
        "seconds": round(seconds, 1),
    }
