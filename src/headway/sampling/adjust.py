"""What a request adds to its logits, or takes from them, before anything is chosen."""

from __future__ import annotations

import numpy as np

from headway.grammar.matcher import Allowed
from headway.sampling.scratch import LARGE, Floats, Scratch
from headway.sampling.state import SamplingState


def adjusted(row: Floats, state: SamplingState, allowed: Allowed | None, scratch: Scratch) -> Floats:
    """A copy with penalties, bias and bans, in this order, and nothing that a constraint forbids, whatever its bias. If bans
    and constraint together leave no token, the constraint goes before."""
    copy = scratch.copy(row)
    _adjust(copy, state)
    if allowed is not None:
        np.copyto(copy, -np.inf, where=allowed.forbidden)
        if len(state.banned) and copy.max() == -np.inf:
            np.copyto(scratch.copy(row), -np.inf, where=allowed.forbidden)
    return copy


def _adjust(row: Floats, state: SamplingState) -> None:
    """In place; only the tokens concerned are touched."""
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
