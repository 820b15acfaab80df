"""A draft head at work: a small OpenVINO network that guesses several tokens ahead in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops

from headway.engines.draft_head import EPSILON, Block, DraftHead, Floats, quantized
from headway.engines.graph import Ends

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Rows of a call: another number takes the plugin time to prepare for, so calls are padded."""


class Drafter:
    """Not thread-safe."""

    def __init__(self, head: DraftHead, ends: Ends, ahead: int, threads: int | None = None) -> None:
        """ends: of the model that it guesses for. ahead: tokens of a guess. threads: None = one per core."""
        properties: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
        if threads:
            properties["INFERENCE_NUM_THREADS"] = threads
        self._width = head.fuse.shape[1]
        model = _network(head, ends, ahead)
        self._request = ov.Core().compile_model(model, "CPU", properties).create_infer_request()

    def draft(self, features: Floats, tokens: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
        """For rows whose last token but one had these features [n, features] and whose last token is tokens[i]: the likeliest
        next ones [n, ahead], and how likely the head thinks each is, if those before it are right [n, ahead]."""
        n = len(tokens)
        size = next((s for s in SIZES if s >= n), n)
        padded = np.zeros((size, self._width), np.float32)
        padded[:n] = features
        ids = np.zeros(size, np.int64)
        ids[:n] = tokens
        guessed = self._request.infer({"features": padded, "tokens": ids}, share_inputs=True, share_outputs=True)
        return guessed[0][:n].copy(), guessed[1][:n].copy()


def _network(head: DraftHead, ends: Ends, ahead: int) -> ov.Model:
    features = ops.parameter([-1, head.fuse.shape[1]], np.float32, name="features")
    tokens = ops.parameter([-1], np.int64, name="tokens")
    features.output(0).set_names({"features"})
    tokens.output(0).set_names({"tokens"})
    table = _compressed(ends.embeddings)
    vocabulary = _compressed(ends.output[head.vocabulary])
    ids = ops.constant(head.vocabulary.astype(np.int64))
    first, last = ops.constant(np.int64(0)), ops.constant(np.int64(-1))
    fuse, join = _compressed(head.fuse), _compressed(head.join)
    blocks = [(b, _compressed(b.gate), _compressed(b.up), _compressed(b.down)) for b in head.blocks]

    parts = ops.split(features, last, len(head.layers)).outputs()
    state = _product(ops.multiply(ops.concat([_norm(p) for p in parts], -1), _row(head.feature_gain)), fuse)
    token: Any = tokens
    guesses, likelihoods = [], []
    for _ in range(ahead):
        embedding = _norm(ops.gather(table, token, first))
        joined = ops.concat(
            [ops.multiply(_norm(state), _row(head.state_gain)), ops.multiply(embedding, _row(head.embedding_gain))], -1
        )
        state = _product(joined, join)
        for block, gate, up, down in blocks:
            state = _feed_forward(state, block, gate, up, down)
        logits = _product(ops.multiply(_norm(state), _row(head.output_gain * ends.norm)), vocabulary)
        best = ops.topk(logits, ops.constant(np.int64(1)), -1, "max", "none")
        weights = ops.exp(ops.subtract(logits, best.output(0)))
        likelihoods.append(ops.divide(ops.constant(np.float32(1.0)), ops.reduce_sum(weights, last, True)))
        guess = ops.gather(ids, best.output(1), first)
        guesses.append(guess)
        token = ops.squeeze(guess, last)
    results = [ops.result(ops.concat(guesses, -1)), ops.result(ops.concat(likelihoods, -1))]
    return ov.Model(results, [features, tokens], "draft_head")


def _feed_forward(x: Any, block: Block, gate: Any, up: Any, down: Any) -> Any:
    normed = ops.multiply(_norm(x), _row(block.gain))
    return ops.add(x, _product(ops.multiply(ops.swish(_product(normed, gate)), _product(normed, up)), down))


def _norm(x: Any) -> Any:
    mean = ops.reduce_mean(ops.multiply(x, x), ops.constant(np.int64(-1)), True)
    return ops.divide(x, ops.sqrt(ops.add(mean, ops.constant(np.float32(EPSILON)))))


def _row(gain: Floats) -> Any:
    return ops.constant(gain.astype(np.float32).reshape(1, -1))


def _product(x: Any, matrix: Any) -> Any:
    return ops.matmul(x, matrix, False, True)


def _compressed(matrix: Floats) -> Any:
    """int8 x scale: a form that the plugin keeps compressed."""
    values, scale = quantized(matrix)
    return ops.convert(ops.multiply(ops.convert(ops.constant(values), np.float16), ops.constant(scale)), np.float32)
