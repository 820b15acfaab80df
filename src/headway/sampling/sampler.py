"""Logits to tokens, for all rows of a step at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.runtime.api import TokenLogprob
from headway.sampling.params import SamplingParams
from headway.sampling.state import SamplingState

Floats = NDArray[np.float32]

_BLOCK = 256
_LARGE = 1e30
"""As good as infinite for a logit, but still a number to calculate with."""
_DEPTHS = (2.0, 4.0, 6.0, 9.0, 14.0, np.inf)
"""How far below the best logit candidates are looked for, one try after the other."""


def sample(logits: Floats, states: Sequence[SamplingState]) -> list[TokenLogprob]:
    """One token for each row. logits: [rows, vocabulary], left as they are; states: one for each row, told of its token.

    The order of work is: bias and penalties, temperature, top_k, top_p (of what top_k left), min_p (relative to the likeliest).
    `logprob` is filled in only where it was asked for (else nan), from the logits as the model gave them.
    """
    adjusted = _adjust(logits, states)
    tokens = [0] * len(states)
    drawn = [i for i, s in enumerate(states) if s.params.temperature > 0.0]
    greedy = [i for i, s in enumerate(states) if s.params.temperature == 0.0]
    if len(greedy) == len(states):
        tokens = adjusted.argmax(axis=1).tolist()
    elif greedy:
        for i in greedy:
            tokens[i] = int(adjusted[i].argmax())
    if drawn:
        for i, token in zip(drawn, _draw(adjusted, drawn, states), strict=True):
            tokens[i] = token
    results = [_with_logprob(logits[i], token, s) for i, (token, s) in enumerate(zip(tokens, states, strict=True))]
    for token, state in zip(tokens, states, strict=True):
        state.observe(token)
    return results


def sample_verifying(
    logits: Floats, states: Sequence[SamplingState], drafts: Sequence[Sequence[int]]
) -> list[list[TokenLogprob]]:
    """Tokens for rows that bring drafts: row i has 1 + len(drafts[i]) rows of logits, one after the other.

    Each token is sampled as it would be without drafts, with its own random number; as long as it equals the draft, the logits
    after that draft are those that it would have got, and the next token is sampled from them. So the text is the same, token
    for token, as without drafts, and its distribution too: a draft that is a single guess is accepted with the probability
    that the model gives it, which is what speculative sampling (arXiv 2302.01318) comes to for such drafts.
    """
    if not any(drafts):
        return [[token] for token in sample(logits, states)]
    if all(_is_plain(s) for s in states):
        return _greedy_verifying(logits.argmax(axis=1).tolist(), states, drafts)
    first = np.cumsum([0, *(1 + len(d) for d in drafts[:-1])])
    results: list[list[TokenLogprob]] = [[] for _ in states]
    active = list(range(len(states)))
    depth = 0
    while active:
        tokens = sample(logits[first[active] + depth], [states[i] for i in active])
        for i, token in zip(active, tokens, strict=True):
            results[i].append(token)
        active = [i for i in active if depth < len(drafts[i]) and results[i][depth].token == drafts[i][depth]]
        depth += 1
    return results


def _is_plain(state: SamplingState) -> bool:
    """Whether the token is simply the likeliest one, and nothing more is asked."""
    return state.params.temperature == 0.0 and not state.adjusts and state.params.logprobs is None


def _greedy_verifying(
    best: Sequence[int], states: Sequence[SamplingState], drafts: Sequence[Sequence[int]]
) -> list[list[TokenLogprob]]:
    """best: the likeliest token at each row of the logits."""
    results: list[list[TokenLogprob]] = []
    at = 0
    for state, guesses in zip(states, drafts, strict=True):
        right = 0
        while right < len(guesses) and best[at + right] == guesses[right]:
            right += 1
        tokens = best[at : at + right + 1]
        for token in tokens:
            state.observe(token)
        results.append([TokenLogprob(token, np.nan) for token in tokens])
        at += len(guesses) + 1
    return results


def _adjust(logits: Floats, states: Sequence[SamplingState]) -> Floats:
    """Bias, penalties and bans; a copy where anything changes."""
    changed = [i for i, s in enumerate(states) if s.adjusts]
    if not changed:
        return logits
    adjusted = logits.copy()
    for i in changed:
        _adjust_row(adjusted[i], states[i])
    return adjusted


def _adjust_row(row: Floats, state: SamplingState) -> None:
    params = state.params
    if params.repetition_penalty != 1.0:
        seen = np.fromiter(state.prompt | state.counts.keys(), np.int64)
        values = row[seen]
        penalised = np.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
        row[seen] = np.clip(penalised, -_LARGE, _LARGE)
    if state.counts and (params.presence_penalty or params.frequency_penalty):
        ids = np.fromiter(state.counts.keys(), np.int64)
        counts = np.fromiter(state.counts.values(), np.float32)
        row[ids] -= params.presence_penalty + params.frequency_penalty * counts
    if params.logit_bias:
        row[list(params.logit_bias.keys())] += np.fromiter(params.logit_bias.values(), np.float32)
    if state.banned:
        row[list(state.banned)] = -np.inf


def _draw(logits: Floats, rows: Sequence[int], states: Sequence[SamplingState]) -> list[int]:
    """One token for each of `rows` by its own random number."""
    scale = np.array([min(1.0 / states[i].params.temperature, _LARGE) for i in rows], np.float32)[:, None]
    weights = logits[list(rows)]
    # The maximum goes first: a tiny temperature then can't overflow to the wrong side.
    weights -= weights.max(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        weights *= scale
    np.exp(weights, out=weights)
    whole = [k for k, i in enumerate(rows) if _draws_from_all(states[i])]
    tokens = [0] * len(rows)
    if whole:
        uniforms = np.array([states[rows[k]].uniform() for k in whole])
        subset = weights if len(whole) == len(rows) else weights[whole]
        for k, token in zip(whole, _draw_from_all(subset, uniforms), strict=True):
            tokens[k] = token
    for k, i in enumerate(rows):
        if not _draws_from_all(states[i]):
            tokens[k] = _draw_from_top(weights[k], states[i])
    return tokens


def _draws_from_all(state: SamplingState) -> bool:
    params = state.params
    return params.top_p >= 1.0 and params.top_k == 0 and params.min_p <= 0.0


def _draw_from_all(weights: Floats, uniforms: NDArray[np.float64]) -> list[int]:
    """Inverse of the cumulative distribution in two levels, so that it is summed up once and searched in one short block."""
    starts = np.arange(0, weights.shape[1], _BLOCK)
    sums = np.add.reduceat(weights, starts, axis=1, dtype=np.float32).astype(np.float64).cumsum(axis=1)
    targets = uniforms * sums[:, -1]
    tokens: list[int] = []
    for row, cumulative, target in zip(weights, sums, targets, strict=True):
        block = min(int(cumulative.searchsorted(target, side="right")), len(starts) - 1)
        before = cumulative[block - 1] if block else 0.0
        inside = row[starts[block] : starts[block] + _BLOCK].astype(np.float64).cumsum()
        at = int(inside.searchsorted(target - before, side="right"))
        if at >= len(inside) or inside[at] <= 0.0:  # rounding at a block's end: the last token that has any weight
            at = int(np.flatnonzero(inside <= inside[-1] * (1.0 - 1e-12))[-1] + 1) if inside[0] < inside[-1] else 0
        tokens.append(int(starts[block]) + at)
    return tokens


def _draw_from_top(weights: Floats, state: SamplingState) -> int:
    """Draw among the tokens that top_k, top_p and min_p leave, likeliest first. Equal weights stand in order of their ids.

    Only the weights are sorted, which is many times quicker than finding their order too; whose the drawn one is, is looked up.
    """
    params = state.params
    ids, values = _candidates(weights, params)
    ordered = np.sort(values)[::-1]
    if params.top_k:
        ordered = ordered[: params.top_k]
    cumulative = ordered.cumsum(dtype=np.float64)
    keep = len(ordered)
    if params.top_p < 1.0:
        total = cumulative[-1] if params.top_k else float(weights.sum(dtype=np.float64))
        keep = int(cumulative.searchsorted(params.top_p * total, side="left")) + 1
    if params.min_p > 0.0:
        keep = min(keep, int((ordered >= params.min_p * ordered[0]).sum()))
    keep = max(1, min(keep, len(ordered)))
    at = min(int(cumulative[:keep].searchsorted(state.uniform() * cumulative[keep - 1], side="right")), keep - 1)
    before = int((ordered > ordered[at]).sum())
    return int(ids[values == ordered[at]][at - before])


def _candidates(weights: Floats, params: SamplingParams) -> tuple[NDArray[np.int64], Floats]:
    """Tokens in order of their ids, and their weights (the likeliest weighs 1): all that the filters can leave, and not many
    more, since these will be sorted."""
    if params.top_k:
        ids, _ = _largest(weights, params.top_k, np.exp([-depth for depth in _DEPTHS]))
        ids.sort()
        return ids, weights[ids]
    total = float(weights.sum(dtype=np.float64)) if params.top_p < 1.0 else 0.0
    for depth in _DEPTHS:
        floor = max(params.min_p, np.exp(-depth))
        ids = np.flatnonzero(weights >= floor)
        if floor <= params.min_p or (total and float(weights[ids].sum(dtype=np.float64)) >= params.top_p * total):
            break
    return ids, weights[ids]


def _largest(values: Floats, n: int, floors: Iterable[float]) -> tuple[NDArray[np.int64], Floats]:
    """The n largest (all, if there are fewer), in falling order; equal ones in order of their ids. floors: values above which
    to look first, falling: going through the few that are left is many times quicker than through all."""
    ids = np.arange(len(values))
    for floor in floors:
        found = np.flatnonzero(values >= floor)
        if len(found) >= n:
            ids = found
            break
    if len(ids) > n:
        some = values[ids]
        ids = ids[some >= np.partition(some, -n)[-n]]
    ids = ids[np.argsort(-values[ids], kind="stable")][:n]
    return ids, values[ids]


def _with_logprob(row: Floats, token: int, state: SamplingState) -> TokenLogprob:
    wanted = state.params.logprobs
    if wanted is None:
        return TokenLogprob(token, np.nan)
    best = float(row.max())
    log_total = best + float(np.log(np.exp(row - best).sum(dtype=np.float64)))
    top: tuple[tuple[int, float], ...] = ()
    if wanted:
        ids, values = _largest(row, wanted, [best - depth for depth in _DEPTHS])
        top = tuple((int(i), float(v) - log_total) for i, v in zip(ids, values, strict=True))
    return TokenLogprob(token, float(row[token]) - log_total, top)
