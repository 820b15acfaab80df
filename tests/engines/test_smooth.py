"""Smoothing: quieter channels for larger groups, and nothing but the rounding changed."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from headway.engines.smooth import GROUP, best_scales, group_size, smooth
from headway.engines.weights import Product
from headway.errors import ModelError

WIDTH = 192


def loud(rng: np.random.Generator, tokens: int = 64) -> np.ndarray:
    """Activations of which three channels are fifty times the others."""
    values = rng.normal(size=(tokens, WIDTH)).astype(np.float32)
    values[:, [5, 70, 150]] *= 50
    return values


def rounded(values: np.ndarray) -> np.ndarray:
    step = np.abs(values).max(1, keepdims=True) / 127
    return np.rint(values / step) * step


def test_a_loud_channel_is_made_quieter_and_the_output_is_nearer_to_the_truth() -> None:
    rng = np.random.default_rng(1)
    inputs, weights = loud(rng), rng.normal(size=(96, WIDTH)).astype(np.float32)
    scales = best_scales(np.abs(inputs).max(0), inputs, weights, WIDTH)
    assert scales is not None
    assert scales[5] > 3 * np.median(scales)
    truth = inputs @ weights.T
    plain = np.abs(rounded(inputs) @ rounded(weights).T - truth).mean()
    smoothed = np.abs(rounded(inputs / scales) @ rounded(weights * scales).T - truth).mean()
    assert smoothed < plain / 2


def test_a_product_that_is_exact_already_is_left_alone() -> None:
    rng = np.random.default_rng(2)
    inputs = rng.choice(np.array([-127, 127], np.float32), (64, WIDTH))
    weights = rng.integers(-126, 127, (96, WIDTH)).astype(np.float32)
    weights[:, 0] = 127
    assert best_scales(np.abs(inputs).max(0), inputs, weights, 32) is None


@pytest.mark.parametrize(
    ("widths", "size"), [([576, 1536], 192), ([2048, 5632], 256), ([896, 4864], 128), ([64, 128], 64), ([320, 640], 160)]
)
def test_the_group_is_the_largest_that_cuts_every_width(widths: list[int], size: int) -> None:
    assert group_size(widths, 256) == size


@pytest.mark.parametrize("widths", [[576, 1536, 32], [100, 200]])
def test_widths_that_no_large_group_cuts_are_one_line(widths: list[int]) -> None:
    with pytest.raises(ModelError, match="exact"):
        group_size(widths, 256)


def graph(*, shared: bool = False) -> tuple[ov.Model, Product]:
    """A model of one norm's weight and one matrix; `shared`: somebody else reads the norm too."""
    rng = np.random.default_rng(3)
    ids = ops.parameter([1, -1], np.int64, name="input_ids")
    ids.output(0).set_names({"input_ids"})
    table = loud(rng, 50)
    embedded = ops.gather(ops.constant(table), ids, ops.constant(np.int64(0)))
    normed = ops.multiply(embedded, ops.constant(rng.uniform(0.5, 2, (1, 1, WIDTH)).astype(np.float32)))
    weights = rng.normal(size=(50, WIDTH)).astype(np.float32)
    logits = ops.matmul(normed, ops.constant(weights), False, True)
    results = [ops.result(logits)] + ([ops.result(ops.relu(normed))] if shared else [])
    return ov.Model(results, [ids], "tiny"), Product(logits.input_value(0), [logits], [weights])


def logits_of(model: ov.Model) -> np.ndarray:
    exactly = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    result: np.ndarray = ov.Core().compile_model(model, "CPU", exactly)([np.arange(50)[None]])[0]
    return result


def test_the_scales_cancel_in_the_graph() -> None:
    model, product = graph()
    before = logits_of(model)
    smooth(model, [product], [[1, 2, 3], [4, 5]], 256)
    # What is left is the int8 of the weights.
    assert np.abs(logits_of(model) - before).mean() < 0.02 * np.abs(before).mean()
    assert model.get_rt_info(GROUP).astype(str) == str(WIDTH)


def test_a_norm_that_others_read_is_not_touched() -> None:
    model, product = graph(shared=True)
    with pytest.raises(ModelError, match="exact"):
        smooth(model, [product], [[1, 2, 3]], 256)
