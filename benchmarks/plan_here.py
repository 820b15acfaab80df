"""What `headway plan --gpu this` says of a step beside what a step takes.

    python benchmarks/plan_here.py [--model smollm2] [--rounds 5]

`headway calibrate` runs first, then the plan; then steps of 1, 4, 16 and 64 rows are measured on the engine, in turns, each
with as many tokens before it as the plan reckons with (the prompt and half of the answer). How to read it: "off" is predicted
over measured less one; the plan is to be within 15%. Predicted is what a step takes in which rows only decode.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from output import publish, right_aligned

from headway.catalog.resolve import resolve
from headway.config import Settings
from headway.engines.base import BatchRow, Engine, start_padded
from headway.errors import HeadwayError
from headway.runtime.opened import open_model

ROWS = (1, 4, 16, 64)
ISL, OSL = 128, 64
STEPS, WARM = 24, 4
WITHIN = 0.15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    headway("calibrate", arguments.model)
    predicted = planned(arguments.model)
    opened = open_model(resolve(arguments.model), Settings(), lambda what: None)
    try:
        rounds = [{rows: step_ms(opened.engine, rows) for rows in ROWS} for _ in range(arguments.rounds)]
    finally:
        opened.engine.close()
    table = right_aligned("Milliseconds of a step", "rows", "predicted", "measured", "off")
    figures, off = {}, []
    for rows in ROWS:
        measured = median(each[rows] for each in rounds)
        off.append(predicted[rows] / measured - 1)
        table.add_row(str(rows), f"{predicted[rows]:.2f}", f"{measured:.2f}", f"{off[-1]:+.1%}")
        figures[rows] = {"predicted_ms": round(predicted[rows], 3), "measured_ms": [round(each[rows], 3) for each in rounds]}
    worst = max(map(abs, off))
    note = f"The most that one is off: {worst:.1%} ({'within' if worst <= WITHIN else 'NOT within'} {WITHIN:.0%})."
    publish("plan_here", table, {"model": Path(arguments.model).name, "rows": figures, "worst_off": round(worst, 4)}, [note])


def headway(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "headway", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise HeadwayError(f"headway {words[0]}: {done.stderr.strip()}")
    return done.stdout


def planned(model: str) -> dict[int, float]:
    said = headway("plan", model, "--gpu", "this", "--isl", str(ISL), "--osl", str(OSL), "--json", "-")
    points = {point["batch"]: point for point in json.loads(said)["points"]}
    return {rows: points[rows]["tpot_ms"] * (1 - points[rows]["parts"]["prompts"]) for rows in ROWS}


def step_ms(engine: Engine, rows: int) -> float:
    before = ISL + OSL // 2
    each = before // engine.info.block_size + 1
    times = []
    for number in range(STEPS):
        blocks = [[(row * each + block) % engine.info.num_blocks for block in range(each)] for row in range(rows)]
        step = [BatchRow([7 + number], before, blocks[row], 1) for row in range(rows)]
        began = time.perf_counter()
        start_padded(engine, step)
        engine.wait()
        times.append(1e3 * (time.perf_counter() - began))
    return median(times[WARM:])


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
