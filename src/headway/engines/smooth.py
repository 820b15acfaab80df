"""Larger groups of activations with one scale each, at the quality of small ones: of 64 channels in the profile "exact", of up
to 256 in "throughput".

The CPU plugin quantizes activations as it goes, in groups of 32 along the channels of a token; larger groups are quicker (8 to
10% of a step of 32 rows with 64, up to 14% with 192) but a few large channels then take the resolution from their neighbours.
So those channels are made smaller and the columns of the matrices that meet them larger (Xiao et al., SmoothQuant, 2023): per
channel c

    s[c] = max|x[c]|^a / max|w[c]|^(1 - a)

divides the norm's weight before the products and multiplies their columns, which changes nothing but the rounding. `a` is
chosen for each product by the error of its output on calibration text. Only inputs that come straight from a norm are
treated; the others gain nothing worth the trouble. A token is still quantized on its own, so its logits depend on no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops

from headway.engines.weights import Matrix, Product, chain_of, matmuls
from headway.errors import ModelError

Channels = NDArray[np.float32]

GROUP = ["headway", "activation_group"]
"""Where the IR says which size of group it was made for."""
SMALLEST_GROUP = 64
"""Below, there is nothing to be had over the plugin's own 32."""
STRENGTHS = (0.0, 0.3, 0.5, 0.65, 0.8)
"""Values of `a` that are tried; 0 leaves the product as it is."""
CONTINUATION = 32
"""Tokens of the model's own, greedy, that follow each calibration prompt."""
SAMPLED = 16
"""Of so many tokens one is kept, to judge a choice of `a` by."""
OUTPUTS = 1024
"""And at most this many rows of the matrix."""
QUIET = 1e-3
"""Least maximum of a channel that is believed."""


def smooth(model: ov.Model, products: Sequence[Product], prompts: Sequence[Sequence[int]], largest_group: int) -> None:
    """Change `model` and its `products` (as `repair` left them) in place, and note the size of group in it. prompts: tokens,
    some thousand in all. largest_group: channels. Raises ModelError for a model without norms that can take scales, or of sizes
    that no group fits."""
    group = group_size([int(node.get_input_partial_shape(1)[-1].get_length()) for node in matmuls(model)], largest_group)
    norms = [(product, norm) for product in products if (norm := _norm_weight(product)) is not None]
    if not norms:
        raise ModelError('no norm before its matrices can be scaled; serve it with the profile "exact"')
    seen = _activations(model, [product.source for product, _ in norms], prompts)
    for (product, norm), (largest, sample) in zip(norms, seen, strict=True):
        scales = best_scales(largest, sample, np.concatenate(product.weights), group)
        if scales is not None:
            values = np.asarray(chain_of(norm.get_source_output().get_node())[-1].data).astype(np.float32)
            norm.replace_source_output(ops.constant((values / scales).astype(np.float32)).output(0))
            product.weights = [weights * scales for weights in product.weights]
            product.write()
    model.validate_nodes_and_infer_types()
    model.set_rt_info(str(group), GROUP)


def group_size(widths: Sequence[int], largest: int) -> int:
    """The largest group, a multiple of 32 channels, that cuts every input evenly. Raises ModelError if that is too small."""
    common = gcd(*widths)
    size = max((n for n in range(32, largest + 1, 32) if common % n == 0), default=0)
    if size < SMALLEST_GROUP:
        raise ModelError(f'its widths share no group of {SMALLEST_GROUP} channels or more; serve it with the profile "exact"')
    return size


def best_scales(largest: Channels, sample: Matrix, weights: Matrix, group: int) -> Channels | None:
    """What the columns of `weights` [outputs, channels] are to be multiplied by, [channels]; None to leave them.
    largest: the most that a channel reaches. sample: [tokens, channels], on which a choice is judged."""
    largest = np.maximum(largest, QUIET)
    heaviest = np.maximum(np.abs(weights).max(0), 1e-4)
    some = weights[:: max(1, len(weights) // OUTPUTS)]
    wanted = sample @ some.T
    best: Channels | None = None
    least = np.inf
    for strength in STRENGTHS:
        scales: Channels | None = None
        if strength:
            scales = largest**strength / heaviest ** (1 - strength)
            scales = (scales / np.exp(np.log(scales).mean())).astype(np.float32)
        divided, multiplied = (sample, some) if scales is None else (sample / scales, some * scales)
        got = _rounded(divided, group) @ _rounded(multiplied, multiplied.shape[1]).T
        error = float(np.mean(np.linalg.norm(got - wanted, axis=1) / (np.linalg.norm(wanted, axis=1) + 1e-9)))
        if error < least:
            best, least = scales, error
    return best


def _rounded(values: Matrix, group: int) -> Matrix:
    """As int8 with a scale for every `group` numbers of a row."""
    grouped = values.reshape(len(values), -1, group)
    step = np.abs(grouped).max(2, keepdims=True) / 127
    step[step == 0] = 1
    rounded: Matrix = (np.rint(grouped / step) * step).reshape(values.shape)
    return rounded


def _norm_weight(product: Product) -> Any | None:
    """Where the weight enters of the norm that makes the product's input, and makes it for nobody else."""
    norm = product.source.get_node()
    if norm.get_type_name() != "Multiply":
        return None
    consumers = [port.get_node() for port in product.source.get_target_inputs()]
    users = {node.get_friendly_name() for node in consumers if node.get_type_name() != "ShapeOf"}
    known = {node.get_friendly_name() for node in product.nodes}
    if users - known:
        return None
    width = product.weights[0].shape[1]
    for port in norm.inputs():
        chain = chain_of(port.get_source_output().get_node())
        kinds = [node.get_type_name() for node in chain]
        if kinds in (["Constant"], ["Convert", "Constant"]) and np.asarray(chain[-1].data).size == width:
            return port
    return None


def _activations(model: ov.Model, sources: Sequence[Any], prompts: Sequence[Sequence[int]]) -> list[tuple[Channels, Matrix]]:
    """Of each of `sources`, over the prompts and the model's own continuations of them: the largest magnitude of each channel,
    and some of its tokens, [tokens, channels]."""
    watched = model.clone()
    by_name = {node.get_friendly_name(): node for node in watched.get_ops()}
    watched.add_outputs([by_name[s.get_node().get_friendly_name()].output(s.get_index()) for s in sources])
    exactly = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
    request = ov.Core().compile_model(watched, "CPU", exactly).create_infer_request()
    names = {name for port in watched.inputs for name in port.get_names()}
    largest = [np.zeros(source.get_partial_shape()[-1].get_length(), np.float32) for source in sources]
    samples: list[list[Matrix]] = [[] for _ in sources]
    passed = 0
    for prompt in prompts:
        request.reset_state()
        tokens, done = list(prompt), 0
        while len(tokens) <= len(prompt) + CONTINUATION:
            request.infer({k: v for k, v in _inputs(tokens, done).items() if k in names})
            for i, most in enumerate(largest):
                values = _rows(request, i + 1)
                np.maximum(most, np.abs(values).max(0), out=most)
                samples[i].append(values[-passed % SAMPLED :: SAMPLED].copy())
            passed += len(tokens) - done
            done = len(tokens)
            tokens.append(int(_rows(request, 0)[-1].argmax()))
    return [(most, np.concatenate(rows)) for most, rows in zip(largest, samples, strict=True)]


def _rows(request: Any, output: int) -> Matrix:
    values = request.get_output_tensor(output).data
    rows: Matrix = values.reshape(-1, values.shape[-1])
    return rows


def _inputs(tokens: Sequence[int], done: int) -> dict[str, NDArray[Any]]:
    """Of the stateful graph, for the tokens from `done` on."""
    new = len(tokens) - done
    return {
        "input_ids": np.array([tokens[done:]], np.int64),
        "attention_mask": np.ones((1, len(tokens)), np.int64),
        "position_ids": np.arange(done, done + new, dtype=np.int64)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
