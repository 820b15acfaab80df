"""headway beside llama.cpp's server and OpenVINO GenAI: same machine, same model file, same prompts, same lengths.

    python benchmarks/peers.py [--model smollm2] [--streams 32] [--rounds 3] [--max-tokens 128] [--parts speed fast]

How to read it: total output tokens/s, from the first request sent to the last token received, prefill included; greedy, and
nobody may stop early. Rounds alternate (headway, llama.cpp, GenAI, headway, ...) so that a drifting machine hits all alike; the
table shows the median, in brackets the lowest and the highest round, and under "headway" how many times that headway's median
is. Prompts differ from round to round, so no cache helps anybody. Servers that don't run at the moment sit idle (none of the
three computes then). GenAI has no HTTP server and is measured in-process, an advantage that headway and llama.cpp don't have.
The second table has one client that asks for fast, in the way of OpenAI's API, beside 32 that don't: its tokens/s over theirs.
Let nothing else run: llama.cpp's threads wait for each other by spinning and suffer most from company.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
from pathlib import Path
from statistics import median

from contestants import Contestant, Job, Mix, Outcome, Speeds, convert, headway, llama_cpp, openvino_genai
from output import publish, right_aligned
from rich.console import Console

from headway.catalog.resolve import resolve
from headway.compare.prompts import PROMPTS
from headway.errors import HeadwayError

HEADWAY, LLAMA, GENAI = "headway", "llama.cpp", "OpenVINO GenAI"
GENAI_TARGET = 1.0  # headway over GenAI, many streams
LLAMA_TARGET = 3.0  # headway over llama.cpp, many streams
SINGLE_TARGET = 1.0  # headway over the better of both, one stream
SINGLE_REQUESTS = 3
MIX_REQUESTS, MIX_TOKENS = 3, 64
PARTS = ("speed", "fast")

Rounds = dict[str, list[Outcome]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a name that `headway pull` knows, or the path of a GGUF")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--ir-cache", type=Path, default=Path(tempfile.gettempdir()) / "headway-bench-ir")
    parser.add_argument("--only", nargs="+", choices=[HEADWAY, LLAMA, GENAI], default=[HEADWAY, LLAMA, GENAI])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    gguf = resolve(arguments.model).path
    with contextlib.ExitStack() as stack:
        contestants: dict[str, Contestant] = {}
        if HEADWAY in arguments.only:
            contestants[HEADWAY] = stack.enter_context(headway(arguments.model, arguments.streams))
        if LLAMA in arguments.only:
            contestants[LLAMA] = stack.enter_context(llama_cpp(gguf, arguments.streams + 1))
        if GENAI in arguments.only:
            contestants[GENAI] = stack.enter_context(openvino_genai(convert(gguf, arguments.ir_cache / gguf.stem)))
        if "speed" in arguments.parts:
            report(*measure(contestants, arguments.streams, arguments.rounds, arguments.max_tokens), arguments)
        if "fast" in arguments.parts:
            report_mix(measure_mix(contestants, arguments.streams, arguments.rounds), arguments)


def measure(contestants: dict[str, Contestant], streams: int, rounds: int, max_tokens: int) -> tuple[Rounds, Rounds]:
    """Alternating rounds at one stream and at many; each contestant first warms up with a short round."""
    console = Console(stderr=True)
    numbers = itertools.count(1)

    def job(requests: int, at_once: int, tokens: int) -> Job:
        number = next(numbers)
        prompts = itertools.islice(itertools.cycle(PROMPTS), requests)
        return Job(tuple(f"Round {number}, task {i}. {p}" for i, p in enumerate(prompts)), at_once, tokens)

    single: Rounds = {name: [] for name in contestants}
    many: Rounds = {name: [] for name in contestants}
    warm_up = job(streams, streams, 16)
    for contestant in contestants.values():
        contestant.run(warm_up)
    for number in range(1, rounds + 1):
        jobs = ((single, job(SINGLE_REQUESTS, 1, max_tokens)), (many, job(streams, streams, max_tokens)))
        for results, each in jobs:
            for name, contestant in contestants.items():
                outcome = contestant.run(each)
                results[name].append(outcome)
                rate = f"{outcome.tokens_per_second:.1f} tokens/s"
                console.print(f"round {number} of {rounds}, {each.streams} at once, {name}: {rate}", highlight=False)
    return single, many


def measure_mix(contestants: dict[str, Contestant], streams: int, rounds: int) -> dict[str, list[Speeds]]:
    """One client that asks for fast, beside `streams` others, in alternating rounds."""
    console = Console(stderr=True)
    speeds: dict[str, list[Speeds]] = {name: [] for name in contestants}
    for number in range(1, rounds + 1):
        fast = tuple(f"Fast round {number}, task {i}. {p}" for i, p in enumerate(PROMPTS[:MIX_REQUESTS]))
        others = tuple(f"Round {number}, task {i}. {p}" for i, p in enumerate(PROMPTS))
        for name, contestant in contestants.items():
            seen = contestant.run_mix(Mix(fast, others, streams, MIX_TOKENS))
            speeds[name].append(seen)
            said = f"fast {seen.fast:.1f} tokens/s, the others {seen.others:.1f} each"
            console.print(f"round {number} of {rounds}, one fast beside {streams}, {name}: {said}", highlight=False)
    return speeds


def report_mix(speeds: dict[str, list[Speeds]], arguments: argparse.Namespace) -> None:
    table = right_aligned(
        f"One client that asks for fast beside {arguments.streams} others, {MIX_TOKENS} tokens each",
        "server", "fast tokens/s", "others tokens/s each", "fast over others",
    )  # fmt: skip
    figures = {}
    for name, seen in speeds.items():
        fast, others = median(s.fast for s in seen), median(s.others for s in seen)
        figures[name] = {"fast": round(fast, 2), "others": round(others, 2), "speed_x": round(fast / others, 3)}
        table.add_row(name, f"{fast:.1f}", f"{others:.1f}", f"{fast / others:.2f}x")
    model, notes = Path(arguments.model).name, [f"{GENAI} is measured without HTTP, the others with it."]
    publish("peers-fast", table, {"model": model, "streams": arguments.streams, "servers": figures}, notes, ("xllamacpp",))


def report(single: Rounds, many: Rounds, arguments: argparse.Namespace) -> None:
    table = right_aligned(
        f"Output tokens/s in all, {arguments.max_tokens} tokens each",
        "server", "1 stream", "headway", f"{arguments.streams} streams", "headway",
    )  # fmt: skip
    for name in single:
        table.add_row(name, spread(single[name]), times(single, name), spread(many[name]), times(many, name))
    notes = [*verdicts(single, many, arguments.streams), *length_notes(many)]
    notes.append(f"{GENAI} is measured without HTTP, the others with it.")
    figures = {
        "model": Path(arguments.model).name,
        "streams": arguments.streams,
        "max_tokens": arguments.max_tokens,
        "tokens_per_second": {
            "1": {name: rates(outcomes) for name, outcomes in single.items()},
            str(arguments.streams): {name: rates(outcomes) for name, outcomes in many.items()},
        },
        "headway_over": {
            "1": {name: ratio(single, name) for name in single},
            str(arguments.streams): {name: ratio(many, name) for name in many},
        },
    }
    publish("peers", table, figures, notes, ("xllamacpp",))


def verdicts(single: Rounds, many: Rounds, streams: int) -> list[str]:
    """Each target and whether it was met."""
    goals = [
        (f"{streams} streams, headway over {GENAI}", ratio(many, GENAI), GENAI_TARGET),
        (f"{streams} streams, headway over {LLAMA}", ratio(many, LLAMA), LLAMA_TARGET),
    ]
    to_peers = [value for name in (LLAMA, GENAI) if (value := ratio(single, name)) is not None]
    goals.append(("1 stream, headway over the better peer", min(to_peers, default=None), SINGLE_TARGET))
    return [
        f"{what}: {value:.2f}x, target {target:g}x: {'met' if value >= target else 'not met'}"
        for what, value, target in goals
        if value is not None
    ]


def length_notes(rounds: Rounds) -> list[str]:
    """Says so if the contestants did not do the same work."""
    work = {name: (outcomes[0].prompt_tokens, outcomes[0].output_tokens) for name, outcomes in rounds.items()}
    if len(set(work.values())) <= 1:
        return []
    listed = "; ".join(f"{name} {prompt} in, {output} out" for name, (prompt, output) in work.items())
    return [f"Tokens per round differ: {listed}."]


def rate(rounds: Rounds, name: str) -> float | None:
    outcomes = rounds.get(name)
    return median(outcome.tokens_per_second for outcome in outcomes) if outcomes else None


def ratio(rounds: Rounds, name: str) -> float | None:
    """Median of headway over median of the other; None if either wasn't measured."""
    ours, theirs = rate(rounds, HEADWAY), rate(rounds, name)
    return ours / theirs if ours is not None and theirs else None


def rates(outcomes: list[Outcome]) -> list[float]:
    return [round(outcome.tokens_per_second, 2) for outcome in outcomes]


def spread(outcomes: list[Outcome]) -> str:
    values = rates(outcomes)
    return f"{median(values):.1f} ({min(values):.0f}-{max(values):.0f})"


def times(rounds: Rounds, name: str) -> str:
    value = None if name == HEADWAY else ratio(rounds, name)
    return "" if value is None else f"{value:.2f}x"


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
