"""Logits to tokens.

Row by row: what is worked on is then one row (200 KB for a large vocabulary), which stays in the processor's cache, and no
row's token can depend on another's. Threads were tried: numpy gives the interpreter's lock up and takes it back at each of the
many short operations, and two threads gained little (docs/performance.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from headway.runtime.api import TokenLogprob
from headway.sampling.adjust import adjusted
from headway.sampling.largest import just_below, largest, lower_bound
from headway.sampling.params import SamplingParams
from headway.sampling.ranked import Ranked
from headway.sampling.scratch import BLOCK, LARGE, Floats, Scratch
from headway.sampling.state import SamplingState

_NO_WEIGHT = 105.0
"""exp of minus so much is 0 in single precision."""
_ROUNDING = 2e-5
"""Logits so close together (at temperature 1) may come to the same weight."""
_FEW = 512
"""Tokens among which the mass that top_p leaves out is first thought to lie."""


@np.errstate(over="ignore", under="ignore", invalid="ignore")  # infinities and zeros are right where they come up
def sample(logits: Floats, states: Sequence[SamplingState]) -> list[TokenLogprob]:
    """One token for each row. logits: [rows, vocabulary], left as they are; states: one for each row, told of its token.

    The order of work is: penalties, bias and bans, what a constraint forbids, temperature, top_k, top_p (of what top_k left),
    min_p (relative to the likeliest).
    `logprob` is filled in only where it was asked for (else nan), from the logits as the model gave them.
    """
    scratch = Scratch(logits.shape[1])
    return [_sample_row(row, state, scratch) for row, state in zip(logits, states, strict=True)]


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sample_verifying(
    logits: Floats, states: Sequence[SamplingState], drafts: Sequence[Sequence[int]]
) -> list[list[TokenLogprob]]:
    """Tokens for rows that bring drafts: row i has 1 + len(drafts[i]) rows of logits, one after the other.

    Each token is sampled as it would be without drafts, with its own random number; as long as it equals the draft, the logits
    after that draft are those that it would have got, and the next token is sampled from them. So the text is the same, token
    for token, as without drafts, and its distribution too: a draft that is a single guess is accepted with the probability
    that the model gives it, which is what speculative sampling (arXiv 2302.01318) comes to for such drafts.
    """
    scratch = Scratch(logits.shape[1])
    results: list[list[TokenLogprob]] = []
    first = 0
    for state, guesses in zip(states, drafts, strict=True):
        after = first + 1 + len(guesses)
        results.append(_sample_run(logits[first:after], state, guesses, scratch))
        first = after
    return results


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def score(logits: Floats, tokens: Sequence[int], wanted: int) -> list[TokenLogprob]:
    """How likely each of `tokens` was, as the model gave it before it was known. logits: [tokens, vocabulary]; wanted: how many
    of the likeliest to name as well. The same, to the last bit, as sampling reports of a token that it has chosen."""
    scratch = Scratch(logits.shape[1])
    return [_with_logprob(row, token, wanted, scratch) for row, token in zip(logits, tokens, strict=True)]


def _sample_run(logits: Floats, state: SamplingState, guesses: Sequence[int], scratch: Scratch) -> list[TokenLogprob]:
    """Tokens of one request up to the first that was not guessed, or that ends it by its constraint."""
    tokens: list[TokenLogprob] = []
    for row, guess in zip_longest(logits, guesses):  # the last row has no guess
        tokens.append(_sample_row(row, state, scratch))
        if tokens[-1].token != guess or state.ended:
            break
    return tokens


def _sample_row(row: Floats, state: SamplingState, scratch: Scratch) -> TokenLogprob:
    token = _choose(row, state, scratch)
    wanted = state.params.logprobs
    result = TokenLogprob(token, np.nan) if wanted is None else _with_logprob(row, token, wanted, scratch)
    state.observe(token)
    return result


def _choose(row: Floats, state: SamplingState, scratch: Scratch) -> int:
    allowed = state.matcher.allowed() if state.matcher is not None else None
    if allowed is not None and allowed.only is not None:
        return allowed.only
    if allowed is not None and allowed.few is not None:
        left = adjusted(row, state, allowed, scratch)[allowed.few] if state.adjusts else row[allowed.few]
        return int(allowed.few[_draw(left, state, Scratch(len(left)))])
    if state.adjusts or allowed is not None:
        row = adjusted(row, state, allowed, scratch)
    return _draw(row, state, scratch)


def _draw(row: Floats, state: SamplingState, scratch: Scratch) -> int:
    """The place of the token chosen, in a row that has been adjusted."""
    params = state.params
    if params.temperature == 0.0:
        return int(row.argmax())
    best = float(row.max())
    if not math.isfinite(best):  # nothing to choose from, or something infinitely likely: no distribution either way
        return int(row.argmax())
    scale = min(max(1.0 / params.temperature, 1.0 / LARGE), LARGE)
    if params.top_k or (params.min_p > 0.0 and params.top_p >= 1.0):
        ids = _reachable(row, best, 1.0 / scale, params)
        return _draw_from_top(ids, scratch.weigh_some(row[ids], best, scale), None, state)
    weights = scratch.weigh(row, best, scale)
    sums = scratch.block_sums().cumsum()
    if params.top_p >= 1.0:
        return _draw_from_all(weights, sums, state.uniform())
    total = float(sums[-1])
    ids, values = _nucleus(weights, params.top_p, total, params.min_p)
    return _draw_from_top(ids, values, total, state)


def _draw_from_all(weights: Floats, sums: NDArray[np.float64], uniform: float) -> int:
    """Inverse of the cumulative distribution in two levels, so that it is summed up once and searched in one short block.
    sums: of the blocks up to each, itself included."""
    target = uniform * float(sums[-1])
    block = min(int(sums.searchsorted(target, side="right")), len(sums) - 1)
    before = float(sums[block - 1]) if block else 0.0
    inside = weights[block * BLOCK : (block + 1) * BLOCK].cumsum(dtype=np.float64)
    at = int(inside.searchsorted(target - before, side="right"))
    # Where rounding leads past a block's end: the last token that has any weight.
    return block * BLOCK + min(at, int(inside.searchsorted(inside[-1], side="left")))


def _reachable(row: Floats, best: float, temperature: float, params: SamplingParams) -> NDArray[np.intp]:
    """Tokens in order of their ids: all that top_k and min_p can leave, and few more."""
    floor = best - _NO_WEIGHT * temperature
    if params.top_k:
        floor = max(floor, lower_bound(row, params.top_k) - _ROUNDING * temperature)
    if params.min_p > 0.0 and params.top_p >= 1.0:  # else top_p, which goes first, needs the weight of what min_p takes away
        floor = max(floor, best + (math.log(params.min_p) - _ROUNDING) * temperature)
    return np.flatnonzero(row >= just_below(floor))


def _nucleus(weights: Floats, top_p: float, total: float, min_p: float) -> tuple[NDArray[np.intp], Floats]:
    """Tokens in order of their ids, and their weights: all that top_p and min_p can leave, and not many more.

    Whatever weighs less than the mean share, over n tokens, of the mass that need not be kept can go: n such tokens together
    weigh less than that mass. Tried with a small n first, which does for most rows and finds few, then with all."""
    needed = top_p * total
    for count in (_FEW, len(weights)):
        floor = (total - needed) / count
        ids = np.flatnonzero(weights >= just_below(max(floor, min_p)))
        values = weights[ids]
        if floor <= min_p or float(values.sum(dtype=np.float64)) >= needed:
            break
    return ids, values


def _draw_from_top(ids: NDArray[np.intp], values: Floats, total: float | None, state: SamplingState) -> int:
    """Draw among the tokens that top_k, top_p and min_p leave, likeliest first. Equal weights stand in order of their ids.

    ids: in rising order; values: their weights, of which the largest is 1; total: the weight of which top_p is a share, None:
    of those that top_k leaves. Only weights are sorted, which is many times quicker than finding their order too; whose the
    drawn one is, is looked up.
    """
    params = state.params
    ranked = Ranked(values)
    keep = min(len(values), params.top_k or len(values))
    if params.top_p < 1.0:
        target = params.top_p * (ranked.mass(keep) if total is None else total)
        keep = min(keep, ranked.reach(target, "left") + 1)
    if params.min_p > 0.0:
        keep = min(keep, int(np.count_nonzero(values >= params.min_p)))
    rank = min(ranked.reach(state.uniform() * ranked.mass(keep), "right"), keep - 1)
    drawn = ranked[rank]
    before = int(np.count_nonzero(values > drawn))
    return int(ids[np.flatnonzero(values == drawn)[rank - before]])


def _with_logprob(row: Floats, token: int, wanted: int, scratch: Scratch) -> TokenLogprob:
    """wanted: how many of the likeliest tokens to name as well."""
    log_total = scratch.log_total(row)
    top: tuple[tuple[int, float], ...] = ()
    if wanted:
        ids = largest(row, wanted)
        top = tuple(zip(ids.tolist(), (row[ids].astype(np.float64) - log_total).tolist(), strict=True))
    return TokenLogprob(token, float(row[token]) - log_total, top)
