"""OpenVINO GenAI's continuous batching in a process of its own: `python peer_genai.py FOLDER`.

Speaks JSON lines: for each line {"prompts", "streams", "max_tokens", "may_end"} on stdin one line {"seconds", "output_tokens",
"prompt_tokens"} on stdout. It has no HTTP server, so it is measured without one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
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
        print(json.dumps(run(pipeline, job["prompts"], job["streams"], config)), flush=True)


def run(pipeline: Any, prompts: list[str], streams: int, config: Any) -> dict[str, float]:
    """Keep `streams` requests going until the prompts are used up; tokens are read as they come, as a server would."""
    tokenizer = pipeline.get_tokenizer()
    inputs = [
        tokenizer.encode(
            tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True),
            add_special_tokens=False,
        ).input_ids
        for prompt in prompts
    ]
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


if __name__ == "__main__":
    main()
