"""What is kept of a model at each token."""

from __future__ import annotations

import numpy as np
import pytest

from headway.distill.known import Likeliest


def test_the_likeliest_tokens_come_first_with_their_log_probabilities() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 200)).astype(np.float32) * 3
    known = Likeliest(8).among(logits)
    exact = logits - np.log(np.exp(logits.astype(np.float64)).sum(1, keepdims=True))
    for row, entry in enumerate(known):
        best = np.argsort(-logits[row], kind="stable")[:8]
        assert entry["ids"].tolist() == best.tolist()
        assert entry["logprobs"].astype(float) == pytest.approx(exact[row, best], abs=0.01)


def test_what_does_not_matter_is_left_out() -> None:
    logits = np.full((1, 100), -50.0, np.float32)
    logits[0, [7, 3]] = 2.0, 5.0
    (entry,) = Likeliest(4).among(logits)
    assert entry["ids"].tolist() == [3, 7, 0, 0]
    assert np.exp(entry["logprobs"].astype(float)).sum() == pytest.approx(1.0, abs=1e-3)
    assert entry["logprobs"][2:].tolist() == [-np.inf, -np.inf]


def test_large_logits_do_not_overflow() -> None:
    (entry,) = Likeliest(2).among(np.array([[1e4, 1e4, 0.0]], np.float32))
    assert entry["logprobs"].tolist() == pytest.approx([np.log(0.5)] * 2, abs=1e-3)
