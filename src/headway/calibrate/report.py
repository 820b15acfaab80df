"""A calibration for people (tables) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.calibrate.bandwidth import Bandwidth
from headway.calibrate.caches import Cache
from headway.calibrate.model import ModelResult
from headway.compare.machine import describe, machine_facts, versions

SHOWN = (1, 8, 32, 64)
"""Rows whose step times the table shows."""
BAR = 24
TARGET_MEDIAN, TARGET_P95 = 0.10, 0.30
"""What the error of a cost model should stay below for paces to be kept."""


@dataclass(frozen=True, slots=True)
class Calibration:
    caches: list[Cache]
    bandwidth: list[Bandwidth]
    model: ModelResult | None


def to_json(result: Calibration) -> dict[str, Any]:
    """The schema:

    - machine: {cpu, cores, memory_gib, os, python, caches: [{level, bytes}]}, bytes of all that the cores have together
    - versions: of headway and the libraries under it
    - bandwidth: [{megabytes (2**20 bytes), gb_s (10**9 bytes a second, all cores), gb_s_one_thread, level ("L1", ...,
      "memory", "unknown")}]
    - model: null without a model, else
      - id, engine (what runs it), weight_bytes (as held in memory), step_bytes (of them read by each step), weights (numbers in
        the matrices, null if unknown)
      - floor_ms: of a step that only reads step_bytes; floor_gb_s: the bandwidth at that size; floor_share: the speed of a step
        of one row over the floor's; stays_in_cache: whether the weights do from step to step, by their bandwidth
      - step_ms: [{tokens, ms, gflop_s (null if weights is)}]
      - cost_model: CostModel.to_dict()
      - error: {steps, median, p95, ladder_median, ladder_p95}: |measured / predicted - 1|, learning as a server does, and of
        the ladder alone
      - paces: {standard, fast}, each {tokens_per_second, most: requests that can be promised it at once}; of fast also
        beside_full_standard: while every standard seat is taken
      - learnt: null if no server has run yet, else {cost_model, paces: {standard, fast} in tokens/s}: of live steps, by which
        `headway serve` promises
    """
    caches = [{"level": cache.level, "bytes": cache.size} for cache in result.caches]
    return {
        "machine": machine_facts() | {"caches": caches},
        "versions": versions(),
        "bandwidth": [
            asdict(rung) | {"gb_s": round(rung.gb_s, 2), "gb_s_one_thread": round(rung.gb_s_one_thread, 2)}
            for rung in result.bandwidth
        ],
        "model": None if result.model is None else _model_json(result.model),
    }


def _model_json(model: ModelResult) -> dict[str, Any]:
    matrices = model.info.matrices
    standard, fast = model.modes
    return {
        "id": model.id,
        "engine": model.info.description,
        "weight_bytes": model.info.weight_bytes,
        "step_bytes": model.step_bytes,
        "weights": matrices.weights if matrices else None,
        "floor_ms": round(1000 * model.floor_seconds, 3),
        "floor_gb_s": round(model.floor_gb_s, 2),
        "floor_share": round(model.floor_share, 4),
        "stays_in_cache": model.residency.stays,
        "step_ms": [
            {
                "tokens": step.tokens,
                "ms": round(1000 * step.seconds, 3),
                "gflop_s": None if step.gflop_s is None else round(step.gflop_s, 1),
            }
            for step in model.steps
        ],
        "cost_model": model.costs.to_dict(),
        "error": asdict(model.error),
        "paces": {
            "standard": {"tokens_per_second": round(standard.pace, 2), "most": standard.max_rows},
            "fast": {
                "tokens_per_second": round(fast.pace, 2),
                "most": fast.max_rows,
                "beside_full_standard": model.fast_beside_full,
            },
        },
        "learnt": _learnt_json(model),
    }


def _learnt_json(model: ModelResult) -> dict[str, Any] | None:
    if model.learnt is None or model.modes_learnt is None:
        return None
    paces = {mode.name.value: round(mode.pace, 2) for mode in model.modes_learnt}
    return {"cost_model": model.learnt.to_dict(), "paces": paces}


def print_report(result: Calibration, console: Console) -> None:
    console.print(_bandwidth_table(result.bandwidth, "#" if console.options.ascii_only else "█"))
    console.print(Text(f"Machine: {describe(machine_facts())}"))
    if result.model is None:
        console.print(Text("No model was measured: name one, such as smollm2 (headway pull smollm2 fetches it)"))
        return
    console.print()
    console.print(Group(_step_table(result.model), *(Text(line) for line in _model_lines(result.model))))


def _bandwidth_table(ladder: Sequence[Bandwidth], block: str) -> Table:
    table = Table()
    for heading in ("working set", "fits into", "GB/s", "", "one thread"):
        table.add_column(heading, justify="left" if heading in ("", "fits into") else "right", no_wrap=True)
    most = max(rung.gb_s for rung in ladder)
    for rung in ladder:
        bar = block * max(1, round(BAR * rung.gb_s / most))
        table.add_row(f"{rung.megabytes:,} MiB", rung.level, f"{rung.gb_s:.1f}", bar, f"{rung.gb_s_one_thread:.1f}")
    return table


def _step_table(model: ModelResult) -> Table:
    table = Table()
    for heading in ("rows in a step", "ms", "tokens/s", "GFLOP/s"):
        table.add_column(heading, justify="right")
    for step in model.steps:
        if step.tokens in SHOWN:
            rate = "unknown" if step.gflop_s is None else f"{step.gflop_s:.0f}"
            table.add_row(str(step.tokens), f"{1000 * step.seconds:.1f}", f"{step.tokens / step.seconds:.0f}", rate)
    return table


def _model_lines(model: ModelResult) -> list[str]:
    error, (standard, fast) = model.error, model.modes
    lines = [
        f"Weights: {model.residency}",
        f"One row: floor {1000 * model.floor_seconds:.1f} ms at {model.floor_gb_s:.1f} GB/s ({model.step_bytes / 1e6:.0f} MB "
        f"of weights a step), measured {1000 * model.steps[0].seconds:.1f} ms: {model.floor_share:.0%} of the floor's speed",
        f"Paces: standard {standard.pace:.1f} tokens/s for {standard.max_rows} requests at once; fast {fast.pace:.1f} tokens/s "
        f"for {fast.max_rows}, {model.fast_beside_full} beside {standard.max_rows} standard ones",
        f"Cost model: off by {error.median:.1%} (median) and {error.p95:.1%} (p95) in {error.steps} live steps; without "
        f"learning {error.ladder_median:.1%} and {error.ladder_p95:.1%}; aim: below {TARGET_MEDIAN:.0%} and {TARGET_P95:.0%}",
        f"Model: {model.id}, {model.info.description}",
    ]
    if model.learnt is not None and model.modes_learnt is not None:
        rows = SHOWN[1]
        slower = model.learnt.seconds(rows) / model.costs.seconds(rows)
        standard, fast = model.modes_learnt
        lines.insert(
            2,
            f"Learnt while serving: a step of {rows} rows takes {slower:.2f} times as long; headway serve promises by that: "
            f"standard {standard.pace:.1f} tokens/s, fast {fast.pace:.1f}",
        )
    return lines
