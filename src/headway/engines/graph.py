"""Graph surgery: a stateful language model becomes one whose single call is a step over any mix of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino._offline_transformations import paged_attention_transformation

from headway.engines.base import Matrices
from headway.errors import ModelError

SAMPLED = "sampled_positions"
STEP_INPUTS = (
    "input_ids",
    "position_ids",
    "past_lens",
    "subsequence_begins",
    "block_indices",
    "block_indices_begins",
    "max_context_len",
)


def paged(model: ov.Model) -> ov.Model:
    """Turn `model` (in place) into its paged form, with logits only for the rows named by the input `sampled_positions`.

    Raises ModelError for a graph without attention that can be paged, or with inputs that headway doesn't know.
    """
    try:
        paged_attention_transformation(model)
    except RuntimeError as error:
        raise ModelError(f"this model's attention can't be paged: {str(error).strip().splitlines()[-1]}") from None
    _sample_only(model)
    names = {name for parameter in model.inputs for name in parameter.get_names()}
    unknown = sorted(n for n in names if n not in STEP_INPUTS and n != SAMPLED and not is_cache(n))
    if unknown or not any(is_cache(n) for n in names):
        raise ModelError(f"this model has inputs that can't be served: {', '.join(unknown) or 'no KV cache'}")
    return model


def is_cache(name: str) -> bool:
    return name.startswith(("key_cache.", "value_cache."))


def vocab_size(model: ov.Model) -> int:
    return int(model.outputs[0].get_partial_shape()[-1].get_length())


def matrices(model: ov.Model) -> Matrices:
    """What the products of the graph multiply by, as far as it is constant."""
    num_bytes = num_weights = 0
    for node in model.get_ordered_ops():
        if node.get_type_name() == "MatMul":
            constants = _constants(node.input_value(1).get_node())
            num_bytes += sum(c.get_byte_size() for c in constants)
            num_weights += max((math.prod(c.get_output_shape(0)) for c in constants), default=0)
    return Matrices(num_bytes, num_weights)


def _constants(node: Any) -> list[Any]:
    """The constants that a matrix is made of; none if it is made of anything else too."""
    if node.get_type_name() == "Constant":
        return [node]
    found: list[Any] = []
    for value in node.input_values():
        part = _constants(value.get_node())
        if not part:
            return []
        found += part
    return found


def _sample_only(model: ov.Model) -> None:
    """A Gather before the last matrix: the vocabulary's logits are the widest product, few rows need it."""
    node = model.get_results()[0].input_value(0).get_node()
    while node.get_type_name() != "MatMul":
        if not node.get_input_size():
            raise ModelError("this model's output is not a matrix product over the vocabulary")
        node = node.input_value(0).get_node()
    positions = ops.parameter([-1], np.int64, name=SAMPLED)
    positions.output(0).set_names({SAMPLED})
    gathered = ops.gather(node.input_value(0), positions, ops.constant(np.int64(0)))
    node.input(0).replace_source_output(gathered.output(0))
    model.add_parameters([positions])
    model.validate_nodes_and_infer_types()
