"""A model that only ever says some of its tokens: its output matrix is cut down to those.

In a small model the matrix over the vocabulary is half of all that a step reads. One that was trained to say everything in a
part of its vocabulary (a spark: see distill/spark/vocabulary.py) names that part in its GGUF. It still understands every token,
and other engines, which don't know the key, run the file as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov
from gguf import GGUFReader
from openvino import opset13 as ops

from headway.engines.graph import constant_value, output_product
from headway.engines.weights import int8
from headway.errors import ModelError

OUTPUT_TOKENS = "headway.output_tokens"
"""In a GGUF: ids, ascending."""
NEVER = -1e4
"""The logit of a token that isn't said: its likelihood is 0 in f32 at any temperature, and its logarithm finite."""
_ROUND = 64
"""Rows of the matrix are a multiple of this."""


def output_tokens(gguf: Path) -> list[int] | None:
    """None for a model that says any of its tokens, as most do. Raises ModelError for a list that can't be one."""
    field = GGUFReader(gguf).fields.get(OUTPUT_TOKENS)
    if field is None:
        return None
    tokens = field.contents()
    if not isinstance(tokens, list) or not tokens or any(not isinstance(t, int) or t < 0 for t in tokens):
        raise ModelError(f"{gguf}: {OUTPUT_TOKENS} has to be a list of token ids")
    return sorted(set(tokens))


def restrict(model: ov.Model, tokens: Sequence[int]) -> None:
    """Change `model` (before it is paged) in place. Its output keeps the shape [..., vocabulary], with NEVER for all tokens but
    these. Raises ModelError if it has fewer tokens, or an output that isn't a matrix."""
    product = output_product(model)
    matrix = constant_value(product.input_value(1).get_node())
    if matrix is None:
        raise ModelError("this model's output is not a matrix, so it can't be cut down")
    if tokens[-1] >= len(matrix):
        raise ModelError(f"{OUTPUT_TOKENS} names token {tokens[-1]}, the model has {len(matrix)}")
    rows = -(-(len(tokens) + 1) // _ROUND) * _ROUND
    cut = np.zeros((rows, matrix.shape[1]), np.float32)
    cut[: len(tokens)] = matrix[list(tokens)]
    product.input(1).replace_source_output(int8(cut).output(0))
    model.validate_nodes_and_infer_types()  # of the product's new width
    raised = np.full(rows, NEVER, np.float32)
    raised[: len(tokens)] = 0
    where = np.full(len(matrix), len(tokens), np.int32)
    where[list(tokens)] = np.arange(len(tokens))
    consumers = list(product.output(0).get_target_inputs())
    said = ops.add(product, ops.constant(raised))
    logits = ops.gather(said, ops.constant(where), ops.constant(np.int64(-1)))
    for consumer in consumers:
        consumer.replace_source_output(logits.output(0))
    model.validate_nodes_and_infer_types()
