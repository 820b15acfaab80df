"""Weights as the GGUF has them.

OpenVINO GenAI's GGUF reader keeps 4-bit groups with a zero point rounded to a whole number. Formats with a free minimum per
group (Q4_1, the K quants) lose by that about a tenth of each weight, and the model a fifth of its perplexity (measured: 18.9
against 15.1 for SmolLM2-135M Q4_1). So each matrix of the converted graph is compared with the tensor that it came from, and
one that is off is replaced by the true weights as symmetric int8 with a scale per output channel, which is what the CPU plugin
multiplies fastest; then the vocabulary's matrix too. Against the file's weights in f32, over 2,000 tokens: Kullback-Leibler
divergence 0.010 and the same likeliest token at 95% of the places; with the reader's weights 0.365 and 71%.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from gguf import GGUFReader, dequantize
from numpy.typing import NDArray
from openvino import opset13 as ops

Matrix = NDArray[np.float32]

MATCHING = 0.9
"""Cosine of the column sums above which a graph's matrix and a tensor are taken for the same."""
FUSED = 3
"""Matrices on one input that are fused: query, key and value."""
LOSSY = 0.01
"""Mean relative difference above which a matrix counts as damaged."""
FOREIGN = 0.5
"""And above which it is another matrix after all."""


@dataclass(slots=True)
class Product:
    """Matrices ([outputs, inputs], the file's weights) that multiply one input of the graph, and the MatMuls that do it."""

    source: Any
    nodes: list[Any]
    weights: list[Matrix]

    def write(self) -> None:
        """Put the weights into the graph as int8. Query, key and value become one product (5% of a small step); gate and up
        stay two, since splitting their wide output makes long prompts slower (12%)."""
        if len(self.nodes) == FUSED:
            self._fuse()
        elif len(self.nodes) == 1:
            self._set(self.nodes[0], np.concatenate(self.weights))
        else:
            for node, weights in zip(self.nodes, self.weights, strict=True):
                self._set(node, weights)

    def _set(self, node: Any, weights: Matrix) -> None:
        node.input(1).replace_source_output(int8(weights).output(0))

    def _fuse(self) -> None:
        fused = ops.matmul(self.source, int8(np.concatenate(self.weights)), False, True)
        rows = ops.constant(np.array([w.shape[0] for w in self.weights], np.int64))
        split = ops.variadic_split(fused, ops.constant(np.int64(-1)), rows)
        for i, node in enumerate(self.nodes):
            for consumer in list(node.output(0).get_target_inputs()):
                consumer.replace_source_output(split.output(i))
        self.nodes = [fused]


def repair(model: ov.Model, gguf: Path, *, everything: bool = False) -> list[Product]:
    """Replace the damaged matrices of `model` (before the paged-attention transformation) in place, or every one whose tensor
    is found. Returns those that were replaced, which may be changed and written once more."""
    tensors = [t for t in GGUFReader(gguf).tensors if len(t.shape) == 2]
    heads = _head_counts(gguf)
    sums = {t.name: (tuple(int(n) for n in reversed(t.shape)), _weights(t).sum(0)) for t in tensors}
    by_name = {t.name: t for t in tensors}
    nodes = list(matmuls(model))
    products: dict[tuple[str, int], Product] = {}
    for node in nodes:
        loaded = _loaded(node)
        name = None if loaded is None else _closest(loaded, sums)
        if loaded is not None and name is not None:
            true, error = _aligned(_weights(by_name[name]), loaded, heads)
            if error < FOREIGN and (everything or error > LOSSY or (products and node is nodes[-1])):
                source = node.input_value(0)
                key = (source.get_node().get_friendly_name(), source.get_index())
                product = products.setdefault(key, Product(source, [], []))
                product.nodes.append(node)
                product.weights.append(true)
    for product in products.values():
        product.write()
    model.validate_nodes_and_infer_types()
    return list(products.values())


def _head_counts(gguf: Path) -> list[int]:
    fields = GGUFReader(gguf).fields
    counts = {int(f.contents()) for name, f in fields.items() if name.endswith((".head_count", ".head_count_kv"))}
    return sorted(counts)


def _weights(tensor: Any) -> Matrix:
    """[outputs, inputs]"""
    return np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)


def matmuls(model: ov.Model) -> Iterator[Any]:
    """The products with a constant matrix, in the graph's order."""
    for node in model.get_ordered_ops():
        if node.get_type_name() == "MatMul" and chain_of(node.input_value(1).get_node())[-1].get_type_name() == "Constant":
            yield node


def chain_of(node: Any) -> list[Any]:
    """From a matrix down to its constant, along first inputs."""
    chain = [node]
    while chain[-1].get_input_size():
        chain.append(chain[-1].input_value(0).get_node())
    return chain


def _constant(node: Any) -> NDArray[Any]:
    constant = chain_of(node)[-1]
    shape = list(constant.get_output_shape(0))
    if constant.get_output_element_type(0) == ov.Type.u4:
        packed = np.asarray(constant.data).view(np.uint8).reshape(-1)
        values = np.empty(packed.size * 2, np.uint8)
        values[0::2], values[1::2] = packed & 15, packed >> 4
        return values[: int(np.prod(shape))].reshape(shape)
    return np.asarray(constant.data).reshape(shape)


def _loaded(node: Any) -> Matrix | None:
    """The matrix a MatMul multiplies by, [outputs, inputs], if it is a quantized constant: (q - zero) x scale."""
    if not node.get_attributes()["transpose_b"]:
        return None
    chain = chain_of(node.input_value(1).get_node())
    scale = [n for n in chain if n.get_type_name() == "Multiply"]
    zero = [n for n in chain if n.get_type_name() == "Subtract"]
    if len(scale) != 1:
        return None
    values = _constant(chain[-1]).astype(np.float32)
    if zero:
        values -= _constant(zero[0].input_value(1).get_node()).astype(np.float32)
    values *= _constant(scale[0].input_value(1).get_node()).astype(np.float32)
    return values.reshape(values.shape[0], -1)


def _closest(loaded: Matrix, sums: dict[str, tuple[tuple[int, ...], Matrix]]) -> str | None:
    """The tensor of the same shape with the most similar column sums (which no order of the rows changes)."""
    mine = loaded.sum(0)
    best, name = MATCHING, None
    for candidate, (shape, theirs) in sums.items():
        if shape == loaded.shape:
            cosine = float(mine @ theirs / (np.linalg.norm(mine) * np.linalg.norm(theirs) + 1e-30))
            if cosine > best:
                best, name = cosine, candidate
    return name


def _aligned(true: Matrix, loaded: Matrix, heads: list[int]) -> tuple[Matrix, float]:
    """The true weights in the row order of the graph (the reader undoes llama.cpp's interleaving of rotary pairs), and the mean
    difference of the loaded ones relative to the mean weight."""
    orders = [true] + [_uninterleaved(true, n) for n in heads if true.shape[0] % (2 * n) == 0]
    scale = float(np.abs(true).mean()) + 1e-30
    errors = [float(np.abs(o - loaded).mean()) / scale for o in orders]
    best = int(np.argmin(errors))
    return orders[best], errors[best]


def _uninterleaved(weights: Matrix, heads: int) -> Matrix:
    rows, columns = weights.shape
    return weights.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def int8(weights: Matrix) -> Any:
    """Constant i8 -> f16 x scale -> f32: a form that the CPU plugin keeps compressed."""
    scale = (np.abs(weights).max(1, keepdims=True) / 127.0).astype(np.float16)
    scale[scale == 0] = np.float16(1e-4)
    values = np.clip(np.rint(weights / scale.astype(np.float32)), -127, 127).astype(np.int8)
    dequantized = ops.multiply(ops.convert(ops.constant(values), np.float16), ops.constant(scale))
    return ops.convert(dequantized, np.float32)
