"""Sampling by its definition, in double precision, the slow way."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headway.sampling.params import SamplingParams


def distribution(row: NDArray[np.float32], params: SamplingParams) -> dict[int, float]:
    """Probability of each token that the filters leave, likeliest first; equal ones in order of their ids."""
    best = float(row.max())
    weights = {i: math.exp((float(x) - best) / params.temperature) for i, x in enumerate(row)}
    left = sorted(weights, key=lambda i: (-weights[i], i))
    if params.top_k:
        left = left[: params.top_k]
    if params.top_p < 1.0:
        total = math.fsum(weights[i] for i in left)
        mass, keep = 0.0, 0
        while keep < len(left) and mass < params.top_p * total:
            mass += weights[left[keep]]
            keep += 1
        left = left[:keep]
    left = [i for i in left if weights[i] >= params.min_p]
    total = math.fsum(weights[i] for i in left)
    return {i: weights[i] / total for i in left}


def token(row: NDArray[np.float32], params: SamplingParams, uniform: float) -> tuple[int, float]:
    """What a uniform number in [0, 1) stands for, and how far it is from standing for a neighbour. Without filters the tokens
    lie in order of their ids, else in order of their weights."""
    p = distribution(row, params)
    filtered = params.top_k > 0 or params.top_p < 1.0 or params.min_p > 0.0
    before = 0.0
    for i in p if filtered else sorted(p):
        after = before + p[i]
        if uniform < after:
            return i, min(uniform - before, after - uniform)
        before = after
    raise AssertionError("probabilities add up to one")
