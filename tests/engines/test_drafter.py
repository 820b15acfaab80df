"""The draft head's network in OpenVINO beside the same sums in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from headway.engines.draft_head import EPSILON, DraftHead, Floats, quantized
from headway.engines.drafter import Drafter
from headway.engines.graph import Ends

from .small_head import HIDDEN, LAYERS, VOCABULARY, normal, small_ends, small_head

AHEAD = 3


def norm(x: Floats) -> Floats:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPSILON)


def rounded(matrix: Floats) -> Floats:
    values, scale = quantized(matrix)
    return values * scale.astype(np.float32)


def reference(head: DraftHead, ends: Ends, features: Floats, tokens: list[int], guesses: np.ndarray) -> list[Floats]:
    """The likelihoods of the whole vocabulary of the head [n, vocabulary], for each token ahead, after `guesses`."""
    parts = [norm(part) for part in np.split(features, len(head.layers), axis=1)]
    state = (np.concatenate(parts, 1) * head.feature_gain) @ rounded(head.fuse).T
    table, output = rounded(ends.embeddings), rounded(ends.output[head.vocabulary])
    seen = []
    for k in range(AHEAD):
        embedding = norm(table[tokens if k == 0 else guesses[:, k - 1]])
        state = np.concatenate([norm(state) * head.state_gain, embedding * head.embedding_gain], 1) @ rounded(head.join).T
        for block in head.blocks:
            n = norm(state) * block.gain
            gate = n @ rounded(block.gate).T
            state = state + (gate / (1 + np.exp(-gate)) * (n @ rounded(block.up).T)) @ rounded(block.down).T
        logits = (norm(state) * head.output_gain * ends.norm) @ output.T
        weights = np.exp(logits - logits.max(1, keepdims=True))
        seen.append(weights / weights.sum(1, keepdims=True))
    return seen


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("rows", [1, 3, 64, 70])
def test_it_guesses_what_numpy_guesses(blocks: int, rows: int) -> None:
    head, ends = small_head(blocks=blocks), small_ends()
    r = np.random.default_rng(rows)
    features, tokens = normal(r, rows, HIDDEN * len(LAYERS)), r.integers(0, VOCABULARY, rows).tolist()
    guesses, likelihoods = Drafter(head, ends, AHEAD).draft(features, tokens)
    assert guesses.shape == likelihoods.shape == (rows, AHEAD)
    assert np.isin(guesses, head.vocabulary).all()
    places = np.searchsorted(head.vocabulary, guesses)
    for k, expected in enumerate(reference(head, ends, features, tokens, guesses)):
        # The plugin rounds activations to eight bits: of two that are nearly as likely it may take the other one.
        given = expected[np.arange(rows), places[:, k]]
        assert np.all(given >= expected.max(1) - 0.1)
        assert np.mean(given == expected.max(1)) > 0.85 or rows < 8
        assert np.abs(likelihoods[:, k] - given).max() < 0.1
        assert np.abs(likelihoods[:, k] - given).mean() < 0.03 or rows < 8
        assert given.max() > 3 / len(head.vocabulary), "likelihoods that differ, or this compares nothing"


def test_a_row_is_guessed_alike_alone_and_among_others() -> None:
    drafter = Drafter(small_head(), small_ends(), AHEAD)
    r = np.random.default_rng(5)
    features, tokens = normal(r, 9, HIDDEN * len(LAYERS)), r.integers(0, VOCABULARY, 9).tolist()
    together, _ = drafter.draft(features, tokens)
    alone = [drafter.draft(features[i : i + 1], tokens[i : i + 1])[0][0] for i in range(9)]
    assert np.array_equal(together, alone)


def test_what_it_returns_outlives_the_next_call() -> None:
    drafter = Drafter(small_head(), small_ends(), AHEAD)
    features = normal(np.random.default_rng(6), 2, HIDDEN * len(LAYERS))
    guesses, likelihoods = drafter.draft(features[:1], [1])
    kept = guesses.copy(), likelihoods.copy()
    drafter.draft(features[1:], [2])
    assert np.array_equal(guesses, kept[0])
    assert np.array_equal(likelihoods, kept[1])
