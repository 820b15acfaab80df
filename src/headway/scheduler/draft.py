"""How many drafts each row of a step verifies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes

Price = Callable[[int, int], float]
"""Seconds of a step of so many tokens with so many of them sampled."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """counts: drafts of each rider. needed: tokens that the step needs room for; drafts beyond it are there because room was
    left. expected: tokens that the step should yield, one of a row that always rides counting `worth` times. seconds: of the
    step."""

    counts: list[int]
    needed: int
    tokens: int
    samples: int
    expected: float
    seconds: float


def allocate(
    riders: Sequence[Request],
    num_always: int,
    worth: float,
    tokens: int,
    needed: int,
    budget: float,
    price: Price,
    sizes: StepSizes,
    max_tokens: int,
    hurdle: float,
) -> Drafts:
    """Drafts for a step of `tokens`, whose first `num_always` riders set its budget in seconds.

    They go where they gain most, and fill the room that the step has anyway, as far as they raise its expected tokens per
    second. Then it grows, a size at a time, if that raises them by the share `hurdle` and the step stays within its budget.
    """
    samples = len(riders)
    expected = worth * num_always + samples - num_always
    drafts = Drafts([0] * samples, needed, tokens, samples, expected, price(sizes.fit(tokens), samples))
    gains = [(worth if i < num_always else 1.0) * r.survival(0) if r.drafts else 0.0 for i, r in enumerate(riders)]
    if not any(gains):
        return drafts
    while drafts.tokens < max_tokens:
        size = min(sizes.fit(drafts.tokens + 1), max_tokens)
        grows = size > sizes.fit(drafts.tokens)
        more = _filled(drafts, riders, gains, num_always, worth, size, price)
        if more.tokens == drafts.tokens:
            break
        if more.expected * drafts.seconds <= (1.0 + hurdle * grows) * drafts.expected * more.seconds:
            break
        if grows and more.seconds > budget:
            break
        drafts = replace(more, needed=more.tokens) if grows else more
        if drafts.tokens < size:
            break
    return drafts


def _filled(
    drafts: Drafts,
    riders: Sequence[Request],
    gains: list[float],
    num_always: int,
    worth: float,
    size: int,
    price: Price,
) -> Drafts:
    """As many more drafts as pay in a step of `size`. gains: what each rider's next draft should bring; kept up to date."""
    counts, expected, samples = drafts.counts.copy(), drafts.expected, drafts.samples
    tokens, seconds = drafts.tokens, drafts.seconds
    while tokens < size:
        gain = max(gains)
        then = price(size, samples + 1)
        pays = (expected + gain) * seconds > expected * then
        # The first one may find the size not worth it; whether all together do is for the caller to see.
        if gain <= 0.0 or not (pays or tokens == drafts.tokens):
            break
        i = gains.index(gain)
        counts[i] += 1
        expected += gain
        tokens, samples, seconds = tokens + 1, samples + 1, then
        gains[i] *= riders[i].survival(counts[i]) if counts[i] < len(riders[i].drafts) else 0.0
    return Drafts(counts, drafts.needed, tokens, samples, expected, seconds)
