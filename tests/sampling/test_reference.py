"""The sampler beside the definition: the same token for the same random number, and right at every limit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample, sample_verifying
from headway.sampling.state import SamplingState

FILTERS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.2, 0.8, 1.0, 2.0, 30.0]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.4, 1e-6]),
    top_k=st.sampled_from([0, 1, 3, 40, 700, 10_000]),
    min_p=st.sampled_from([0.0, 1e-9, 0.02, 0.3, 1.0]),
    seed=st.integers(0, 2**63 - 1),
)
ANY = st.one_of(
    FILTERS,
    st.builds(
        SamplingParams,
        temperature=st.sampled_from([0.0, 0.7]),
        presence_penalty=st.sampled_from([0.0, 0.7]),
        frequency_penalty=st.sampled_from([0.0, -0.5]),
        repetition_penalty=st.sampled_from([1.0, 1.3]),
        logit_bias=st.sampled_from([{}, {3: 4.0, 9: -2.0}]),
        logprobs=st.sampled_from([None, 0, 3]),
        seed=st.integers(0, 2**63 - 1),
    ),
)


def logits(seed: int, vocabulary: int, scale: float, rows: int = 1) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal((rows, vocabulary)) * scale).astype(np.float32)


def draw(row: NDArray[np.float32], params: SamplingParams) -> int:
    return sample(row[None, :], [SamplingState(params, [])])[0].token


@settings(max_examples=300, deadline=None)
@given(
    FILTERS,
    st.integers(0, 1000),
    st.sampled_from([1, 2, 255, 257, 1000, 3000]),
    st.sampled_from([0.05, 1.0, 4.0]),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 0.99]),
)
def test_the_token_is_the_one_that_the_definition_gives(
    params: SamplingParams, seed: int, vocabulary: int, scale: float, ties: bool, masked: float
) -> None:
    # Multiples of a small fraction: what differs then also weighs differently in single precision, at every temperature here.
    fraction = 2 if ties else 1024
    row = np.round(logits(seed, vocabulary, scale)[0] * fraction) / fraction
    forbidden = np.random.default_rng(seed + 1).random(vocabulary) < masked
    forbidden[int(row.argmax())] = False
    row[forbidden] = -np.inf
    uniform = SamplingState(params, []).uniform()
    expected, margin = reference.token(row, params, uniform)
    # Where a border of the filters or of a token lies within single precision of the number, either side is right.
    assume(margin > 1e-5 and _clear_of_borders(row, params))
    assert draw(row, params) == expected


def _clear_of_borders(row: NDArray[np.float32], params: SamplingParams) -> bool:
    """Whether a little more or less of each filter leaves the same tokens."""
    sizes = {
        len(reference.distribution(row, replace(params, top_p=min(1.0, params.top_p * f), min_p=min(1.0, params.min_p * f))))
        for f in (1 - 1e-5, 1.0, 1 + 1e-5)
    }
    return len(sizes) == 1


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(seed=3),
        SamplingParams(top_p=0.7, seed=4),
        SamplingParams(top_k=30, seed=5),
        SamplingParams(min_p=0.1, seed=6),
        SamplingParams(temperature=0.7, top_k=40, top_p=0.9, min_p=0.05, seed=7),
        SamplingParams(temperature=3.0, top_p=0.95, seed=8),
    ],
)
@pytest.mark.parametrize("vocabulary", [500, 6000])
def test_draws_follow_the_definitions_distribution(params: SamplingParams, vocabulary: int) -> None:
    row = logits(11, vocabulary, 2.0)[0]
    state, n = SamplingState(params, []), 6000
    counts = np.bincount([sample(row[None, :], [state])[0].token for _ in range(n)], minlength=vocabulary)
    p = np.zeros(vocabulary)
    for i, share in reference.distribution(row, params).items():
        p[i] = share
    assert counts[p == 0].sum() == 0
    often = p * n >= 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(p[often] * n, p[~often].sum() * n)
    some = expected > 1e-6
    chi2 = ((observed - expected)[some] ** 2 / expected[some]).sum()
    freedom = max(1, int(some.sum()) - 1)
    assert chi2 < freedom + 5 * np.sqrt(2 * freedom)


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=6), st.integers(0, 1000), st.randoms())
def test_a_rows_tokens_do_not_depend_on_the_batch(kinds: list[SamplingParams], seed: int, random: object) -> None:
    rows, steps = len(kinds), 4
    together = [SamplingState(p, [1, 2, 3, 9]) for p in kinds]
    alone = [SamplingState(p, [1, 2, 3, 9]) for p in kinds]
    order = list(range(rows))
    for step in range(steps):
        x = logits(seed + step, 700, 2.0, rows)
        random.shuffle(order)  # type: ignore[attr-defined]
        batch = dict(zip(order, sample(x[order], [together[i] for i in order]), strict=True))
        for i in range(rows):
            single = sample(x[i : i + 1], [alone[i]])[0]
            assert (batch[i].token, batch[i].top) == (single.token, single.top)
            assert batch[i].logprob == single.logprob or math.isnan(single.logprob)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ANY, st.lists(st.integers(0, 5), max_size=3)), min_size=1, max_size=4), st.integers(0, 1000))
def test_verified_rows_do_not_depend_on_the_batch(rows: list[tuple[SamplingParams, list[int]]], seed: int) -> None:
    drafts = [guesses for _, guesses in rows]
    x = logits(seed, 10, 1.0, sum(1 + len(d) for d in drafts))
    together = sample_verifying(x, [SamplingState(p, [1]) for p, _ in rows], drafts)
    first = 0
    for (params, guesses), tokens in zip(rows, together, strict=True):
        after = first + 1 + len(guesses)
        [alone] = sample_verifying(x[first:after], [SamplingState(params, [1])], [guesses])
        assert [t.token for t in tokens] == [t.token for t in alone]
        assert [t.token for t in tokens[:-1]] == guesses[: len(tokens) - 1]
        first = after


EVERY_KIND = [
    SamplingParams(temperature=0.0),
    SamplingParams(seed=1),
    SamplingParams(top_p=0.9, seed=1),
    SamplingParams(top_k=5, seed=1),
    SamplingParams(top_k=10**9, seed=1),
    SamplingParams(top_k=5, top_p=0.9, min_p=0.1, seed=1),
    SamplingParams(min_p=0.1, seed=1),
    SamplingParams(min_p=1e-300, seed=1),
    SamplingParams(temperature=1e-300, seed=1),
    SamplingParams(temperature=1e-6, top_p=0.5, seed=1),
    SamplingParams(temperature=1e300, seed=1),
    SamplingParams(repetition_penalty=1.3, presence_penalty=1.0, seed=1),
    SamplingParams(logit_bias={7: 100.0}, logprobs=3, seed=1),
]


@pytest.mark.parametrize("params", EVERY_KIND)
@pytest.mark.parametrize("vocabulary", [9, 256, 1000])
def test_where_all_but_one_are_masked_that_one_is_drawn(params: SamplingParams, vocabulary: int) -> None:
    for value in (-1e30, -3.0, 0.0, 3e38):
        row = np.full(vocabulary, -np.inf, np.float32)
        row[8] = value
        state = SamplingState(params, [8, 8])
        assert [sample(row[None, :], [state])[0].token for _ in range(5)] == [8] * 5


@pytest.mark.parametrize("params", EVERY_KIND)
def test_masked_tokens_are_never_drawn(params: SamplingParams) -> None:
    row = logits(2, 1000, 0.1)[0]
    row[::2] = -np.inf
    state = SamplingState(params, [2, 4, 6])
    assert all(sample(row[None, :], [state])[0].token % 2 for _ in range(100))


@pytest.mark.parametrize("params", EVERY_KIND)
@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, 3.4e38, -3.4e38, 0.0])
def test_whatever_the_model_gives_there_is_a_token(params: SamplingParams, value: float) -> None:
    row = np.full(1000, value, np.float32)
    assert 0 <= draw(row, params) < 1000


@pytest.mark.parametrize("params", EVERY_KIND)
def test_the_far_ends_of_the_scale_do_not_mix(params: SamplingParams) -> None:
    row = np.full(1000, -3.4e38, np.float32)
    row[8] = 3.4e38
    if params.temperature <= 1.0:
        assert draw(row, params) == 8


def test_equal_logits_stand_in_order_of_their_ids() -> None:
    row = np.zeros(1000, np.float32)
    row[500:503] = 1.0
    assert draw(row, SamplingParams(temperature=0.0)) == 500
    state = SamplingState(SamplingParams(top_k=5, seed=1), [])
    assert {sample(row[None, :], [state])[0].token for _ in range(200)} == {0, 1, 500, 501, 502}
    top = sample(row[None, :], [SamplingState(SamplingParams(logprobs=5), [])])[0].top
    assert [token for token, _ in top] == [500, 501, 502, 0, 1]


def test_likeliest_tokens_are_named_even_where_most_are_masked() -> None:
    row = np.full(1000, -np.inf, np.float32)
    row[[7, 5]] = 1.0
    top = sample(row[None, :], [SamplingState(SamplingParams(logprobs=4), [])])[0].top
    assert [token for token, _ in top] == [5, 7, 0, 1]
    assert [value for _, value in top] == pytest.approx([-math.log(2), -math.log(2), -math.inf, -math.inf])


@pytest.mark.parametrize("shift", [-500.0, 0.0, 40.0, 500.0])
def test_log_probabilities_do_not_depend_on_where_the_logits_lie(shift: float) -> None:
    row = np.round(logits(5, 1000, 3.0)[0] * 8) / 8
    expected = row.astype(np.float64) - np.log(np.exp(row.astype(np.float64)).sum())
    result = sample((row + np.float32(shift))[None, :], [SamplingState(SamplingParams(temperature=0.0, logprobs=0), [])])[0]
    assert result.logprob == pytest.approx(float(expected.max()), abs=1e-5)


def test_beside_a_repetition_penalty_the_others_still_leave_the_prompt_alone() -> None:
    row = np.zeros(1000, np.float32)
    row[5], row[6] = 2.0, 1.5
    params = SamplingParams(temperature=0.0, repetition_penalty=1.1, presence_penalty=0.5)
    state = SamplingState(params, [5])
    assert [sample(row[None, :], [state])[0].token for _ in range(2)] == [5, 6]
