"""One stream at the fast mode with each source of drafts, and without any.

    python benchmarks/drafts.py [--model smollm2] [--draft-model smollm2-spark] [--prompts 20] [--max-tokens 128]

How to read it: output tokens/s of one greedy stream from its first token on, in-process, median over chat prompts that neither
the draft head nor the spark has learned from; "x" is the median over prompts of the rate over the one without drafts. All take
turns, prompt by prompt. "tokens a step" are those that a step of the model yields. Texts must be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from output import figure, publish, right_aligned
from rich.console import Console

from headway.catalog.resolve import resolve
from headway.compare.prompts import PROMPTS
from headway.config import Settings, load
from headway.errors import HeadwayError
from headway.modes import ModeName
from headway.runtime.api import GenerateRequest
from headway.runtime.assemble import Assembled, assemble
from headway.sampling.params import SamplingParams

NONE, TEXT, HEAD, MODEL = "none", "the text", "the text and the draft head", "the text and the draft model"


@dataclass(frozen=True, slots=True)
class Answer:
    """rate: tokens/s after the first. steps: of the model, for the tokens after the first."""

    tokens: list[int]
    rate: float
    steps: int
    drafted: int
    accepted: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a name that `headway pull` knows, or the path of a GGUF")
    parser.add_argument("--draft-model", default="smollm2-spark")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=128)
    arguments = parser.parse_args()
    prompts = [prompt for prompt in PROMPTS if len(prompt) < 400][: arguments.prompts]
    ways: dict[str, dict[str, object]] = {
        NONE: {"scheduler.speculation": False},
        TEXT: {"engine.draft_head": "none"},
        HEAD: {},
        MODEL: {"engine.draft_model": arguments.draft_model},
    }
    with ExitStack() as stack:
        running = {}
        for name, changes in ways.items():
            settings = load(None).with_overrides({"scheduler.max_rows": 2, "scheduler.fast_rows": 1, **changes})
            running[name] = started(arguments.model, settings)
            stack.callback(running[name].loop.close)
        answers = asyncio.run(measure(running, prompts, arguments.max_tokens))
    report(answers)


def started(model: str, settings: Settings) -> Assembled:
    draft = settings.engine.draft_model
    (assembled,) = assemble(resolve(model), settings, lambda what: None, draft=resolve(draft) if draft else None)
    assembled.loop.start()
    return assembled


async def measure(running: dict[str, Assembled], prompts: list[str], most: int) -> dict[str, list[Answer]]:
    console = Console(stderr=True)
    answers: dict[str, list[Answer]] = {name: [] for name in running}
    for number, prompt in enumerate(["Say hello.", *prompts]):
        for name, assembled in running.items():
            answer = await answered(assembled, prompt, number, most)
            if number:
                answers[name].append(answer)
                console.print(f"{number} of {len(prompts)}, {name}: {answer.rate:.1f} tokens/s", highlight=False)
    return answers


async def answered(assembled: Assembled, prompt: str, number: int, most: int) -> Answer:
    served = assembled.served
    if served.template is None:
        raise HeadwayError(f"{served.id} has no chat template")
    tokens = served.tokenizer.encode_prompt(served.template.render([{"role": "user", "content": prompt}]))
    params = SamplingParams(temperature=0.0, logprobs=0)
    stream = assembled.loop.submit(GenerateRequest(f"{number}", tokens, most, ModeName.FAST, params))
    output: list[int] = []
    times: list[float] = []
    counts: list[int] = []
    usage = None
    async for delta in stream:
        output += [lp.token for lp in delta.logprobs]
        times.append(time.perf_counter())
        counts.append(len(output))
        usage = delta.usage or usage
    assert usage is not None
    seconds = times[-1] - times[0]
    rate = (counts[-1] - counts[0]) / seconds if seconds > 0 else 0.0
    return Answer(output, rate, len(times) - 1, sum(usage.drafted.values()), sum(usage.accepted.values()))


def report(answers: dict[str, list[Answer]]) -> None:
    table = right_aligned(
        "One greedy stream on free chat", "drafts from", "tokens/s", "x", "tokens a step", "drafts right", "same text"
    )
    figures = {}
    base = answers[NONE]
    for name, each in answers.items():
        ratios = [a.rate / b.rate for a, b in zip(each, base, strict=True) if b.rate]
        same = sum(a.tokens == b.tokens for a, b in zip(each, base, strict=True))
        drafted, steps = sum(a.drafted for a in each), sum(a.steps for a in each)
        right = sum(a.accepted for a in each) / drafted if drafted else None
        per_step = sum(len(a.tokens) - 1 for a in each) / steps
        rate, ratio = median(a.rate for a in each), median(ratios)
        shown = (figure(rate), f"{ratio:.2f}", figure(per_step, "{:.2f}"), figure(right, "{:.0%}"), f"{same} of {len(each)}")
        table.add_row(name, *shown)
        figures[name] = {
            "tokens_per_second": [round(a.rate, 2) for a in each],
            "over_none": round(ratio, 3),
            "tokens_per_step": round(per_step, 3),
            "accepted": None if right is None else round(right, 3),
            "same_text": same,
        }
    publish("drafts", table, {"prompts": len(base), "drafts": figures}, [])


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
