"""What choosing tokens costs in a step of 64 rows.

    python benchmarks/sampling.py [--rows 64] [--vocabulary 49152] [--step-ms 75] [--repeats 50]

How to read it: median and p99 milliseconds to sample one token for every row, for rows that all ask for the same kind of
sampling and for a mix of all kinds; the last column is the share of a step that takes --step-ms (75 ms is what a step of 64
rows of SmolLM2-135M takes on two AMX cores). The loop samples between steps, so this share is time in which the device may
have nothing to do.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
from output import publish, right_aligned

from headway.compare.stats import percentile
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import Floats, sample
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
PROMPT_TOKENS = 128
OUTPUT_TOKENS = 64
LIKELY = 30
WARM_UP = 3
NUM_LOGITS = 4  # different arrays in turn, so that no run finds its logits in the processor's cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=49_152)
    parser.add_argument("--step-ms", type=float, default=75.0)
    parser.add_argument("--repeats", type=int, default=50)
    arguments = parser.parse_args()
    shape = (arguments.rows, arguments.vocabulary)
    generator = np.random.default_rng(7)
    logits = [model_like_logits(generator, shape) for _ in range(NUM_LOGITS)]
    mixes = {name: [params] for name, params in KINDS.items()} | {"mixed": list(KINDS.values())}
    table = right_aligned(f"Sampling {shape[0]} rows of {shape[1]:,} logits", "kind", "median ms", "p99 ms", "of a step")
    figures = {}
    for name, kinds in mixes.items():
        times = measure(logits, [kinds[i % len(kinds)] for i in range(arguments.rows)], arguments.repeats, generator)
        middle = median(times)
        figures[name] = {
            "median_ms": round(middle, 3),
            "p99_ms": round(percentile(times, 99) or 0.0, 3),
            "share_of_step": round(middle / arguments.step_ms, 4),
        }
        table.add_row(name, f"{middle:.2f}", f"{figures[name]['p99_ms']:.2f}", f"{middle / arguments.step_ms:.1%}")
    load = {"rows": shape[0], "vocabulary": shape[1], "step_ms": arguments.step_ms}
    publish("sampling", table, load | {"kinds": figures}, [])


def model_like_logits(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Logits [rows, vocabulary] with a broad tail, some likely tokens and, in every fourth row, one far out, as in a
    language model's: how many tokens lie near the top decides what the filters cost."""
    logits = generator.normal(0.0, 2.5, shape).astype(np.float32)
    for number, row in enumerate(logits):
        row[generator.integers(0, shape[1], LIKELY)] += generator.exponential(3.0, LIKELY).astype(np.float32)
        if number % 4 == 0:
            row[generator.integers(0, shape[1])] += 10.0
    return logits


def measure(logits: list[Floats], params: list[SamplingParams], repeats: int, generator: np.random.Generator) -> list[float]:
    """Milliseconds of each call, for requests that are in the middle of their output."""
    vocabulary = logits[0].shape[1]
    states = [SamplingState(p, generator.integers(0, vocabulary, PROMPT_TOKENS).tolist()) for p in params]
    for state in states:
        for token in generator.integers(0, vocabulary, OUTPUT_TOKENS).tolist():
            state.uniform()  # each output token draws its number, as in a real run
            state.observe(token)
    times = []
    for number in range(WARM_UP + repeats):
        begun = time.perf_counter()
        sample(logits[number % len(logits)], states)
        times.append(1000 * (time.perf_counter() - begun))
    return times[WARM_UP:]


if __name__ == "__main__":
    main()
