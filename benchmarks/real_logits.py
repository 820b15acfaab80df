"""Logits as a model gives them in the middle of chat answers, and how long such a step takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from headway.catalog.local import LocalModel
from headway.catalog.resolve import resolve
from headway.compare.prompts import PROMPTS, SAME_TEXT_PROMPTS
from headway.config import Settings
from headway.engines import open_engine
from headway.engines.base import BatchRow, Engine, start_padded
from headway.errors import UsageError
from headway.runtime.opened import graph_folder
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample
from headway.sampling.scratch import Floats
from headway.sampling.state import SamplingState
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Tokenizer

STEPS = 64
"""Output tokens of each answer."""
EVERY = 16
"""Logits are kept of each so-manieth step."""
TIMED = 32
"""The last steps, whose median time counts: by then the shapes are set up."""
CHUNK = 256
BLOCK_ROOM = 64
"""Tokens of room for the last block of a row, whatever the size of a block."""


@dataclass(frozen=True, slots=True)
class Collected:
    """logits: arrays [rows, vocabulary] of different steps; prompts, outputs: each row's tokens by the end; step_ms: median
    milliseconds of a step in which every row gets one token."""

    logits: list[NDArray[np.float32]]
    prompts: list[list[int]]
    outputs: list[list[int]]
    step_ms: float


def collect(name: str, rows: int) -> Collected:
    """Let the model answer `rows` chat prompts at once. Raises HeadwayError if there is no such model or it can't be run."""
    model = resolve(name)
    tokenizer = Tokenizer.load(model.path)
    prompts = _prompts(model, tokenizer, rows)
    engine = _open(model, max(map(len, prompts)) + STEPS + 1, rows)
    try:
        return _answer(engine, prompts, tokenizer.eos_ids)
    finally:
        engine.close()


def _prompts(model: LocalModel, tokenizer: Tokenizer, rows: int) -> list[list[int]]:
    """Different prompts as far as they go, then the same again: their answers differ, being drawn."""
    source = model.chat_template or tokenizer.chat_template
    if not source:
        raise UsageError(f"{model.id} has no chat template; choose a chat model")
    template = ChatTemplate(source, bos=tokenizer.bos, eos=tokenizer.eos)
    texts = [*PROMPTS, *SAME_TEXT_PROMPTS]
    chats = [[{"role": "user", "content": texts[i % len(texts)]}] for i in range(rows)]
    return [tokenizer.encode_prompt(template.render(chat)) for chat in chats]


def _open(model: LocalModel, longest: int, rows: int) -> Engine:
    settings = Settings()
    folder = graph_folder(model, settings, lambda what: None)
    # Each row has blocks of its own, the last of them partly empty.
    return open_engine(folder, settings.engine, model.context_length, rows * (longest + BLOCK_ROOM))


def _answer(engine: Engine, prompts: Sequence[Sequence[int]], eos: frozenset[int]) -> Collected:
    per_row = -(-(max(map(len, prompts)) + STEPS + 1) // engine.info.block_size)
    if per_row * len(prompts) > engine.info.num_blocks:
        raise UsageError(f"the KV cache has no room for {len(prompts)} rows; use fewer with --rows")
    blocks = [list(range(row * per_row, (row + 1) * per_row)) for row in range(len(prompts))]
    states = [
        SamplingState(SamplingParams(temperature=0.8, seed=row), prompt, banned=sorted(eos), min_tokens=STEPS)
        for row, prompt in enumerate(prompts)
    ]
    logits: Floats = np.concatenate([_prefill(engine, p, b) for p, b in zip(prompts, blocks, strict=True)])
    outputs: list[list[int]] = [[] for _ in prompts]
    kept, times = [], []
    for step in range(1, STEPS + 1):
        for output, sampled in zip(outputs, sample(logits, states), strict=True):
            output.append(sampled.token)
        rows = [BatchRow(o[-1:], len(p) + step - 1, b, 1) for o, p, b in zip(outputs, prompts, blocks, strict=True)]
        begun = time.perf_counter()
        start_padded(engine, rows)
        logits = engine.wait()
        times.append(1000 * (time.perf_counter() - begun))
        if step % EVERY == 0:
            kept.append(logits.copy())
    return Collected(kept, [list(p) for p in prompts], outputs, median(times[-TIMED:]))


def _prefill(engine: Engine, prompt: Sequence[int], blocks: Sequence[int]) -> Floats:
    """Logits [1, vocabulary] of the prompt's last token."""
    for start in range(0, len(prompt), CHUNK):
        start_padded(engine, [BatchRow(prompt[start : start + CHUNK], start, blocks, int(start + CHUNK >= len(prompt)))])
        logits = engine.wait()
    return logits.copy()
