"""Sampling: right distributions, filters as defined, and a seed that means the same whatever else is in the batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.grammar.compiler import Compiler
from headway.grammar.constraint import json_schema
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample, sample_verifying
from headway.sampling.state import SamplingState

VOCAB = 1000


def logits(seed: int = 0, rows: int = 1, scale: float = 3.0) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal((rows, VOCAB)) * scale).astype(np.float32)


def draw(row: NDArray[np.float32], params: SamplingParams, n: int, prompt: tuple[int, ...] = ()) -> list[int]:
    """n tokens from the same logits by one request (whose penalties would count them)."""
    state = SamplingState(params, prompt)
    return [sample(row[None, :], [state])[0].token for _ in range(n)]


def softmax(row: NDArray[np.float32], temperature: float = 1.0) -> NDArray[np.float64]:
    weights = np.exp((row.astype(np.float64) - row.max()) / temperature)
    return weights / weights.sum()


def expected_set(row: NDArray[np.float32], params: SamplingParams) -> set[int]:
    """The tokens that the filters leave, by the definitions, computed the slow way."""
    p = softmax(row, params.temperature)
    order = np.argsort(-row, kind="stable")
    if params.top_k:
        order = order[: params.top_k]
    p_left = p[order] / p[order].sum()
    if params.top_p < 1:
        keep = int(np.searchsorted(p_left.cumsum(), params.top_p - 1e-7)) + 1
        order, p_left = order[:keep], p_left[:keep]
    if params.min_p:
        order = order[p[order] >= params.min_p * p.max() * (1 - 1e-5)]
    return set(order.tolist())


def test_greedy_takes_the_best_and_leaves_the_logits_alone() -> None:
    x = logits(rows=5)
    before = x.copy()
    states = [SamplingState(SamplingParams(temperature=0.0, logit_bias={3: 1.0}), []) for _ in range(5)]
    tokens = [s.token for s in sample(x, states)]
    biased = x.copy()
    biased[:, 3] += 1.0
    assert tokens == biased.argmax(1).tolist()
    assert np.array_equal(x, before)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_distribution(temperature: float) -> None:
    row = logits(1, scale=2.0)[0]
    n = 20_000
    counts = np.bincount(draw(row, SamplingParams(temperature=temperature, seed=7), n), minlength=VOCAB)
    p = softmax(row, temperature)
    # Pearson's chi-square over the tokens expected at least five times, the rest as one bin.
    often = p * n >= 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(p[often] * n, p[~often].sum() * n)
    chi2 = ((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    freedom = len(expected) - 1
    assert chi2 < freedom + 5 * np.sqrt(2 * freedom)


filters = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.3, 1.0, 1.7]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.05]),
    top_k=st.sampled_from([0, 1, 5, 40, 5000]),
    min_p=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    seed=st.integers(-1, 2**63 - 1),
)


@settings(max_examples=60, deadline=None)
@given(filters, st.integers(0, 50), st.sampled_from([0.01, 1.0, 4.0]))
def test_only_what_the_filters_leave_is_drawn(params: SamplingParams, seed: int, scale: float) -> None:
    row = logits(seed, scale=scale)[0]
    assert set(draw(row, params, 60)) <= expected_set(row, params)


def test_all_that_the_filters_leave_is_drawn_in_the_end() -> None:
    row = logits(3, scale=0.5)[0]
    params = SamplingParams(top_k=6, seed=1)
    assert set(draw(row, params, 600)) == expected_set(row, params)


@pytest.mark.parametrize(
    "params", [SamplingParams(seed=42), SamplingParams(seed=42, top_p=0.8), SamplingParams(seed=0, min_p=0.01)]
)
def test_a_seed_means_the_same_alone_and_beside_others(params: SamplingParams) -> None:
    rows = logits(5, rows=30)
    alone = SamplingState(params, [])
    beside = SamplingState(params, [])
    others = [SamplingState(SamplingParams(temperature=0.7 + 0.1 * i, top_k=i), []) for i in range(16)]
    for t in range(24):
        row = rows[t : t + 1]
        crowd = np.concatenate([logits(t, rows=8), row, logits(t + 100, rows=8)])
        results = sample(crowd, [*others[:8], beside, *others[8:]])
        assert results[8].token == sample(row, [alone])[0].token


def test_different_seeds_differ_and_no_seed_is_not_seed_zero() -> None:
    row = logits(6)[0]
    texts = {tuple(draw(row, SamplingParams(seed=s), 16)) for s in (0, 1, -1, 2**63 - 1, None, None)}
    assert len(texts) == 6


def test_penalties_count_the_output_only_and_grow_with_it() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[5], row[6] = 2.0, 1.5
    params = SamplingParams(temperature=0.0, presence_penalty=1.0)
    assert draw(row, params, 3, prompt=(5, 5, 5)) == [5, 6, 5]
    params = SamplingParams(temperature=0.0, frequency_penalty=0.4)
    assert draw(row, params, 5) == [5, 5, 6, 5, 6]


def test_repetition_penalty_counts_the_prompt_too() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[5], row[6] = 2.0, 1.5
    assert draw(row, SamplingParams(temperature=0.0, repetition_penalty=1.5), 1, prompt=(5,)) == [6]
    row[:] = -3.0
    row[5], row[6] = -1.0, -1.2
    assert draw(row, SamplingParams(temperature=0.0, repetition_penalty=1.5), 1, prompt=(5,)) == [6]


def test_banned_tokens_come_only_after_min_tokens() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[2] = 9.0
    row[8] = 1.0
    state = SamplingState(SamplingParams(temperature=0.0), [], banned=[2], min_tokens=2)
    assert [sample(row[None, :], [state])[0].token for _ in range(3)] == [8, 8, 2]


def test_logprobs_are_of_the_models_own_distribution() -> None:
    row = logits(9)[0]
    params = SamplingParams(temperature=0.0, logprobs=4, logit_bias={17: 100.0})
    result = sample(row[None, :], [SamplingState(params, [])])[0]
    p = np.log(softmax(row))
    assert result.token == 17
    assert result.logprob == pytest.approx(p[17], abs=1e-4)
    best = np.argsort(-row, kind="stable")[:4]
    assert [t for t, _ in result.top] == best.tolist()
    assert [lp for _, lp in result.top] == pytest.approx(p[best].tolist(), abs=1e-4)
    none = sample(row[None, :], [SamplingState(SamplingParams(temperature=0.0, logprobs=0), [])])[0]
    assert none.top == ()
    assert none.logprob == pytest.approx(p.max(), abs=1e-4)


@pytest.mark.parametrize("bias", [-1e30, 1e30])
def test_extreme_logits_and_temperatures_still_give_a_token(bias: float) -> None:
    row = logits(4)[0]
    row[7] = bias
    for temperature in (1e-300, 1e-39, 1e-6, 1.0, 100.0):
        tokens = draw(row, SamplingParams(temperature=temperature, seed=1), 20)
        assert all(0 <= t < VOCAB for t in tokens)
        if bias > 0:
            assert set(tokens) == {7}
        else:
            assert 7 not in tokens


class Chain:
    """A model whose logits depend on the last token alone."""

    def __init__(self, vocab: int = 12) -> None:
        self.table = (np.random.default_rng(3).standard_normal((vocab, vocab)) * 1.5).astype(np.float32)

    def generate(self, params: SamplingParams, n: int, guess: Callable[[list[int]], list[int]] | None = None) -> list[int]:
        """n tokens; with `guess`, drafts are verified as the engine loop does it."""
        state, out = SamplingState(params, [0]), [0]
        while len(out) <= n:
            drafts = guess(out) if guess else []
            logits = self.table[[out[-1], *drafts]]
            out += [t.token for t in sample_verifying(logits, [state], [drafts])[0]]
        return out[1 : n + 1]


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.0),
        SamplingParams(temperature=0.9, seed=5),
        SamplingParams(temperature=1.2, top_p=0.8, seed=6),
        SamplingParams(temperature=0.0, frequency_penalty=0.3, presence_penalty=0.2),
        SamplingParams(temperature=1.0, repetition_penalty=1.3, seed=7),
    ],
)
def test_drafts_right_or_wrong_change_no_token(params: SamplingParams) -> None:
    chain = Chain()
    plain = chain.generate(params, 60)
    assert chain.generate(params, 60, lambda out: plain[len(out) - 1 :][:4]) == plain
    assert chain.generate(params, 60, lambda out: [1, 2, 3]) == plain
    assert chain.generate(params, 60, lambda out: [*plain[len(out) - 1 :][:2], 11, 10]) == plain


def test_drafts_leave_the_distribution_as_it_is() -> None:
    """Pairs of successive tokens from an unseeded model with a constant draft, against what the model says."""
    chain = Chain(vocab=5)
    n = 4000
    counts = np.zeros((5, 5))
    for _ in range(n):
        a, b = chain.generate(SamplingParams(temperature=1.0), 2, lambda out: [2, 2])
        counts[a, b] += 1
    p = np.array([softmax(chain.table[0])[a] * softmax(chain.table[a]) for a in range(5)])
    chi2 = ((counts - n * p) ** 2 / (n * p)).sum()
    assert chi2 < 24 + 5 * np.sqrt(2 * 24)


BYTES = [bytes([i]) for i in range(256)] + [b""] * (VOCAB - 256)
END = 999


def constrained(schema: Any, params: SamplingParams, **more: Any) -> SamplingState:
    grammar = Compiler(BYTES, {END}, lambda text: list(text.encode())).compile(json_schema(schema))
    return SamplingState(params, [], matcher=grammar.start(), **more)


def generate(state: SamplingState, seed: int, most: int = 60, draft: Callable[[int], list[int]] = lambda at: []) -> list[int]:
    """Tokens from logits that depend on the place alone, several at a time where the drafts are right."""
    out: list[int] = []
    while not state.ended and len(out) < most:
        guesses = draft(len(out))
        assert state.matcher is not None
        state.matcher.prepare(guesses)
        rows = np.concatenate([logits(seed * 1000 + len(out) + i) for i in range(len(guesses) + 1)])
        out += [s.token for s in sample_verifying(rows, [state], [guesses])[0]]
    return out


SCHEMA = {
    "type": "object",
    "properties": {"ab": {"enum": ["x", "yy", "zzz"]}, "n": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["ab", "n"],
    "additionalProperties": False,
}
KINDS = [
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.9, seed=3),
    SamplingParams(temperature=1.5, seed=3, top_p=0.9),
    SamplingParams(temperature=1.5, seed=3, top_k=5, min_p=0.01),
    SamplingParams(temperature=1.0, seed=3, repetition_penalty=1.3, presence_penalty=1.0),
    SamplingParams(temperature=0.0, logit_bias={ord("!"): 100.0, ord("x"): -100.0}),
]


@pytest.mark.parametrize("params", KINDS)
def test_a_constraint_is_kept_and_drafts_change_nothing(params: SamplingParams) -> None:
    for seed in range(6):
        plain = generate(constrained(SCHEMA, params), seed)
        value = json.loads(bytes(plain))
        assert value["ab"] in SCHEMA["properties"]["ab"]["enum"] and 0 <= value["n"] <= 999  # type: ignore[index]
        right = generate(constrained(SCHEMA, params), seed, draft=lambda at, plain=plain: plain[at : at + 4])
        wrong = generate(constrained(SCHEMA, params), seed, draft=lambda at, plain=plain: [*plain[at : at + 2], 7, 8])
        over = generate(constrained(SCHEMA, params), seed, draft=lambda at, plain=plain: [*plain[at:], END, 65, 66])
        assert plain == right == wrong == over


def test_the_end_is_banned_until_min_tokens_where_there_is_a_choice() -> None:
    likes_to_end = SamplingParams(temperature=0.0, logit_bias={END: 100.0, ord("0"): -100.0})
    number = generate(constrained({"type": "integer"}, likes_to_end, banned=[END], min_tokens=5), 0)
    assert len(number) == 6 and number[-1] == END
    assert generate(constrained({"const": "a"}, likes_to_end, banned=[END], min_tokens=50), 0) == list(b'"a"')


def test_bans_that_leave_nothing_give_way() -> None:
    state = constrained({"const": 12}, SamplingParams(temperature=0.0), banned=[ord("1"), ord("2")], min_tokens=9)
    assert generate(state, 0) == list(b"12")


def test_a_constrained_draw_follows_the_distribution_of_what_is_left() -> None:
    row = logits(seed=4)
    counts = np.zeros(VOCAB)
    for seed in range(2000):
        state = constrained_digit(seed)
        counts[sample(row, [state])[0].token] += 1
    digits = np.arange(ord("0"), ord("9") + 1)
    wanted = softmax(row[0][digits])
    assert counts.sum() == counts[digits].sum()
    assert np.abs(counts[digits] / 2000 - wanted).max() < 0.05


DIGIT = Compiler(BYTES, {END}, lambda text: list(text.encode())).compile(json_schema({"enum": list(range(10))}))


def constrained_digit(seed: int) -> SamplingState:
    return SamplingState(SamplingParams(seed=seed), [], matcher=DIGIT.start())
