"""How likely the tokens of prompts were, where a request wants to know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.runtime.live import Live
from headway.sampling.sampler import score
from headway.scheduler.step import Step


def score_prompts(logits: NDArray[np.float32], step: Step, lives: Sequence[Live]) -> NDArray[np.float32]:
    """Enter what a step that has just run says of prompts into `lives`, one for each of its rows; it must not be complete yet.
    logits: of the whole step [step.num_samples, vocabulary]. Returns those that tokens are sampled from, in the same order."""
    if not any(row.num_scored for row in step.rows):
        return logits
    sampled: list[int] = []
    first = 0
    for row, live in zip(step.rows, lives, strict=True):
        after = first + row.num_scored
        if row.num_scored:
            request = row.request
            end = min(request.num_computed + row.num_tokens, request.num_prompt - 1)
            tokens = request.tokens[end + 1 - row.num_scored : end + 1]
            live.scores += score(logits[first:after], tokens, live.prompt_logprobs or 0)
        first += row.num_samples
        sampled += range(after, first)
    return logits[sampled]
