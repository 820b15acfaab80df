"""What a request adds to its logits, or takes from them, before anything is chosen."""

from __future__ import annotations

import numpy as np

from headway.sampling.scratch import LARGE, Floats
from headway.sampling.state import SamplingState


def adjust(row: Floats, state: SamplingState) -> None:
    """Penalties, bias and bans, in this order and in place; only the tokens concerned are touched."""
    if state.counts_tokens:
        row[state.seen.ids] = _penalised(row[state.seen.ids], state)
    if len(state.bias_ids):
        row[state.bias_ids] += state.bias
    if len(state.banned):
        row[state.banned] = -np.inf


def _penalised(values: Floats, state: SamplingState) -> Floats:
    params, counts = state.params, state.seen.counts
    if params.repetition_penalty != 1.0:
        penalised = values * params.repetition_penalty
        np.divide(values, params.repetition_penalty, out=penalised, where=values > 0)
        values = np.minimum(penalised, LARGE, out=penalised)
    if params.presence_penalty or params.frequency_penalty:
        values -= np.where(counts > 0, params.presence_penalty + params.frequency_penalty * counts, np.float32(0.0))
    return values
