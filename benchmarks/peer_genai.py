"""OpenVINO GenAI's continuous batching in a process of its own: `python peer_genai.py FOLDER`.

Speaks JSON lines: for each line {"prompts", "streams", "max_tokens"} on stdin one line {"seconds", "output_tokens",
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = CACHE_GIB
    pipeline = openvino_genai.ContinuousBatchingPipeline(str(arguments.folder), scheduler, "CPU", {})
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(run(pipeline, job["prompts"], job["streams"], job["max_tokens"])), flush=True)


def run(pipeline: Any, prompts: list[str], streams: int, max_tokens: int) -> dict[str, float]:
    """Keep `streams` requests going until the prompts are used up; tokens are read as they come, as a server would."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = max_tokens
    config.ignore_eos = True
    config.do_sample = False
    config.apply_chat_template = False
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
