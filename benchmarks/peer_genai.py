"""OpenVINO GenAI's continuous batching in a process of its own: `python peer_genai.py FOLDER`.

Speaks JSON lines: for each line {"prompts", "streams", "max_tokens", "may_end"} on stdin one line {"seconds", "output_tokens",
"prompt_tokens"} on stdout; with "fast_prompts" one {"fast", "others"}, tokens/s of each request of one client that asks for
these one after the other, and of `streams` others meanwhile. It has no HTTP server, so it is measured without one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openvino_genai

CACHE_GIB = 2
LOOKUP_TOKENS, LOOKUP_NGRAM = 5, 3
"""Drafts per step and the longest match, the values of GenAI's own sample."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lookup", action="store_true", help="draft from the prompt (one request at a time)")
    arguments = parser.parse_args()
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = CACHE_GIB
    properties = {"prompt_lookup": True} if arguments.lookup else {}
    pipeline = openvino_genai.ContinuousBatchingPipeline(str(arguments.folder), scheduler, "CPU", properties)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = job["max_tokens"]
        config.ignore_eos = not job["may_end"]
        config.do_sample = False
        config.apply_chat_template = False
        if job["may_end"]:
            config.set_eos_token_id(pipeline.get_tokenizer().get_eos_token_id())
        if arguments.lookup:
            config.num_assistant_tokens, config.max_ngram_size = LOOKUP_TOKENS, LOOKUP_NGRAM
        if "fast_prompts" in job:
            answer = run_mix(pipeline, job["fast_prompts"], job["prompts"], job["streams"], config)
        else:
            answer = run(pipeline, job["prompts"], job["streams"], config)
        print(json.dumps(answer), flush=True)


def encode(pipeline: Any, prompts: list[str]) -> list[Any]:
    tokenizer = pipeline.get_tokenizer()
    return [
        tokenizer.encode(
            tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True),
            add_special_tokens=False,
        ).input_ids
        for prompt in prompts
    ]


def run(pipeline: Any, prompts: list[str], streams: int, config: Any) -> dict[str, Any]:
    """Keep `streams` requests going until the prompts are used up; tokens are read as they come, as a server would."""
    inputs = encode(pipeline, prompts)
    output_tokens = 0
    waiting = list(enumerate(inputs))
    active: list[Any] = []
    begun = time.perf_counter()
    while waiting or active:
        while waiting and len(active) < streams:
            number, ids = waiting.pop(0)
            active.append(pipeline.add_request(number, ids, config))
        pipeline.step()
        for handle in active:
            while handle.can_read():
                output_tokens += sum(len(output.generated_ids) for output in handle.read().values())
        active = [handle for handle in active if handle.get_status() == openvino_genai.GenerationStatus.RUNNING]
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "output_tokens": output_tokens, "prompt_tokens": sum(ids.shape[1] for ids in inputs)}


@dataclass
class Streamed:
    """A request that is running, and when its tokens came."""

    handle: Any
    is_fast: bool
    tokens: int = 0
    first_at: float = 0.0
    last_at: float = 0.0

    def read(self) -> None:
        while self.handle.can_read():
            new = sum(len(output.generated_ids) for output in self.handle.read().values())
            self.last_at = time.perf_counter()
            self.first_at = self.first_at or self.last_at
            self.tokens += new

    @property
    def running(self) -> bool:
        return bool(self.handle.get_status() == openvino_genai.GenerationStatus.RUNNING)

    @property
    def tokens_per_second(self) -> float:
        return (self.tokens - 1) / (self.last_at - self.first_at)


def run_mix(pipeline: Any, fast_prompts: list[str], prompts: list[str], streams: int, config: Any) -> dict[str, Any]:
    """The fast client comes when the others' first requests have their first tokens; what ends while it is there counts."""
    numbers = itertools.count()
    others_inputs, fast_inputs = itertools.cycle(encode(pipeline, prompts)), encode(pipeline, fast_prompts)
    speeds: dict[str, list[float]] = {"fast": [], "others": []}

    def start(inputs: Any, *, is_fast: bool) -> Streamed:
        return Streamed(pipeline.add_request(next(numbers), inputs, config), is_fast)

    active = [start(next(others_inputs), is_fast=False) for _ in range(streams)]
    here = False
    while here or fast_inputs:
        pipeline.step()
        for each in active:
            each.read()
        ended = [each for each in active if not each.running]
        active = [each for each in active if each.running]
        for each in ended:
            if each.is_fast or here:
                speeds["fast" if each.is_fast else "others"].append(each.tokens_per_second)
            here = here and not each.is_fast
            if not each.is_fast:
                active.append(start(next(others_inputs), is_fast=False))
        if not here and fast_inputs and all(each.tokens or each.is_fast for each in active):
            active.append(start(fast_inputs.pop(0), is_fast=True))
            here = True
    while active:  # the pipeline goes on with the next job only when it has nothing left to do
        pipeline.step()
        for each in active:
            each.read()
        active = [each for each in active if each.running]
    return speeds


if __name__ == "__main__":
    main()
