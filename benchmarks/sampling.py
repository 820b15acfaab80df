"""What choosing tokens costs in a step of 64 rows.

    python benchmarks/sampling.py [--model smollm2] [--rows 64] [--repeats 50] [--flat]

How to read it: median and p99 milliseconds to sample one token for every row, for rows that all ask for the same kind of
sampling and for a mix of all kinds, from logits that the model gave in the middle of its answers to as many chat prompts; and
the share of a step, as measured in the same run. The loop samples between steps, so in this time the device has nothing to do.
`flat` is the worst case: made-up logits with thousands of tokens near the top, where the filters have most to sort.
--flat measures that alone and needs no model; its shares are of a step of --step-ms.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median

import numpy as np
from output import publish, right_aligned
from real_logits import collect

from headway.compare.stats import percentile
from headway.errors import HeadwayError
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample
from headway.sampling.scratch import Floats
from headway.sampling.state import SamplingState

KINDS = {
    "greedy": SamplingParams(temperature=0.0),
    "temperature": SamplingParams(temperature=0.8),
    "top_p": SamplingParams(temperature=0.8, top_p=0.95),
    "top_k": SamplingParams(temperature=0.8, top_k=40),
    "min_p": SamplingParams(temperature=0.8, min_p=0.05),
    "penalties": SamplingParams(temperature=0.8, presence_penalty=0.5, frequency_penalty=0.5, repetition_penalty=1.1),
    "logprobs": SamplingParams(temperature=0.0, logprobs=5),
}
MIXES = {name: [params] for name, params in KINDS.items()} | {"mixed": list(KINDS.values())}
PROMPT_TOKENS = 128
OUTPUT_TOKENS = 64
LIKELY = 30
WARM_UP = 3
NUM_LOGITS = 4  # different arrays in turn, so that no run finds its logits in the processor's cache


@dataclass(frozen=True, slots=True)
class Load:
    """logits: arrays [rows, vocabulary], taken in turn; prompts, outputs: what the rows have behind them."""

    logits: list[Floats]
    prompts: list[list[int]]
    outputs: list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--flat", action="store_true", help="made-up flat logits only; no model is needed")
    parser.add_argument("--vocabulary", type=int, default=49_152, help="with --flat: tokens that it has")
    parser.add_argument("--step-ms", type=float, default=60.0, help="with --flat: milliseconds of a step")
    arguments = parser.parse_args()
    generator = np.random.default_rng(7)
    if arguments.flat:
        step_ms, vocabulary, loads = arguments.step_ms, arguments.vocabulary, {}
    else:
        real = collect(arguments.model, arguments.rows)
        step_ms, vocabulary = real.step_ms, real.logits[0].shape[1]
        loads = {"real": Load(real.logits, real.prompts, real.outputs)}
    loads["flat"] = flat_load(generator, arguments.rows, vocabulary)
    figures = {name: measure_kinds(load, arguments.repeats, step_ms) for name, load in loads.items()}
    headings = [f"{name}, {what}" for name in figures for what in ("median ms", "p99 ms", "of a step")]
    title = f"Sampling {arguments.rows} rows of {vocabulary:,} logits; a step takes {step_ms:.1f} ms"
    table = right_aligned(title, "kind", *headings)
    for kind in MIXES:
        cells = [figures[name][kind] for name in figures]
        texts = [(f"{c['median_ms']:.2f}", f"{c['p99_ms']:.2f}", f"{c['share_of_step']:.1%}") for c in cells]
        table.add_row(kind, *chain.from_iterable(texts))
    circumstances = {
        "model": None if arguments.flat else Path(arguments.model).name,
        "rows": arguments.rows,
        "vocabulary": vocabulary,
        "step_ms": round(step_ms, 2),
        "step_measured": not arguments.flat,
    }
    publish("sampling", table, circumstances | {"kinds": figures}, [])


def flat_load(generator: np.random.Generator, rows: int, vocabulary: int) -> Load:
    return Load(
        [flat_logits(generator, (rows, vocabulary)) for _ in range(NUM_LOGITS)],
        generator.integers(0, vocabulary, (rows, PROMPT_TOKENS)).tolist(),
        generator.integers(0, vocabulary, (rows, OUTPUT_TOKENS)).tolist(),
    )


def flat_logits(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Logits [rows, vocabulary] with a broad tail, some likely tokens and, in every fourth row, one far out: how many tokens
    lie near the top decides what the filters cost, and here it is many more than a model's."""
    logits = generator.normal(0.0, 2.5, shape).astype(np.float32)
    for number, row in enumerate(logits):
        row[generator.integers(0, shape[1], LIKELY)] += generator.exponential(3.0, LIKELY).astype(np.float32)
        if number % 4 == 0:
            row[generator.integers(0, shape[1])] += 10.0
    return logits


def measure_kinds(load: Load, repeats: int, step_ms: float) -> dict[str, dict[str, float]]:
    figures = {}
    for name, kinds in MIXES.items():
        times = measure(load, kinds, repeats)
        figures[name] = {
            "median_ms": round(median(times), 3),
            "p99_ms": round(percentile(times, 99) or 0.0, 3),
            "share_of_step": round(median(times) / step_ms, 4),
        }
    return figures


def measure(load: Load, kinds: Sequence[SamplingParams], repeats: int) -> list[float]:
    """Milliseconds of each call, for requests that are in the middle of their output."""
    states = [SamplingState(kinds[row % len(kinds)], prompt) for row, prompt in enumerate(load.prompts)]
    for state, output in zip(states, load.outputs, strict=True):
        for token in output:
            state.uniform()  # each output token draws its number, as in a real run
            state.observe(token)
    times = []
    for number in range(WARM_UP + repeats):
        begun = time.perf_counter()
        sample(load.logits[number % len(load.logits)], states)
        times.append(1000 * (time.perf_counter() - begun))
    return times[WARM_UP:]


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
