"""Graph surgery: a stateful language model becomes one whose single call is a step over any mix of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
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


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a language model begins and ends: embeddings [vocabulary, hidden], the gain of the last norm [hidden], and the
    output matrix [vocabulary, hidden]."""

    embeddings: NDArray[np.float32]
    norm: NDArray[np.float32]
    output: NDArray[np.float32]


def paged(model: ov.Model, layers: Sequence[int] = ()) -> ov.Model:
    """Turn `model` (in place) into its paged form, with logits only for the rows named by the input `sampled_positions`. Of
    these it also gives the residual stream after each of `layers`, in outputs of their own [rows, hidden].

    Raises ModelError for a graph without attention that can be paged, or with inputs that headway doesn't know.
    """
    try:
        paged_attention_transformation(model)
    except RuntimeError as error:
        raise ModelError(f"this model's attention can't be paged: {str(error).strip().splitlines()[-1]}") from None
    last, positions = _sample_only(model)
    if layers:
        _tap(model, _residual_stream(last), layers, positions)
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


def ends(model: ov.Model) -> Ends:
    """Of a model that isn't paged yet. Raises ModelError if it isn't built as most are: a table of embeddings, and at the end a
    norm and a matrix."""
    last = output_product(model)
    output = constant_value(last.input_value(1).get_node())
    norm = next(
        (v for i in last.input_value(0).get_node().input_values() if (v := constant_value(i.get_node())) is not None), None
    )
    table = None
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Gather" and list(node.get_input_partial_shape(0)) == list(last.get_input_partial_shape(1)):
            table = constant_value(node.input_value(0).get_node())
            break
    if output is None or norm is None or table is None or norm.size != output.shape[1]:
        raise ModelError("this model's embeddings and output are not of the usual form, so a draft head can't be used with it")
    return Ends(table, norm.reshape(-1), output)


def num_layers(model: ov.Model) -> int:
    """Of a model that isn't paged yet. Raises ModelError if they can't be told apart."""
    return len(_residual_stream(output_product(model).input_value(0).get_node()))


def read_ends(folder: Path) -> tuple[Ends, int]:
    """The ends of the model in `folder`, an OpenVINO IR, and how many layers lie between. Raises ModelError, as `ends` and
    `num_layers` do."""
    try:
        model = ov.Core().read_model(folder / "openvino_model.xml")
    except RuntimeError as error:
        raise ModelError(f"{folder} can't be loaded: {str(error).strip().splitlines()[-1]}") from None
    return ends(model), num_layers(model)


def constant_value(node: Any) -> NDArray[np.float32] | None:
    """What a node that only depends on constants gives, if it is a (de)quantized matrix or vector; else None."""
    kind = node.get_type_name()
    if kind == "Constant":
        return np.array(node.data, np.float32).reshape(list(node.get_output_shape(0)))
    if kind not in ("Convert", "Multiply", "Reshape", "Subtract"):
        return None
    left = constant_value(node.input_value(0).get_node())
    if left is None or kind == "Convert":
        return left
    if kind == "Reshape":
        return left.reshape(list(node.get_output_shape(0)))
    right = constant_value(node.input_value(1).get_node())
    if right is None:
        return None
    return left * right if kind == "Multiply" else left - right


def output_product(model: ov.Model) -> Any:
    """The last matrix product, over the vocabulary."""
    node = model.get_results()[0].input_value(0).get_node()
    while node.get_type_name() != "MatMul":
        if not node.get_input_size():
            raise ModelError("this model's output is not a matrix product over the vocabulary")
        node = node.input_value(0).get_node()
    return node


def _sample_only(model: ov.Model) -> tuple[Any, Any]:
    """A Gather before the last matrix: the vocabulary's logits are the widest product, few rows need it. Returns what comes
    before the Gather, and its positions."""
    node = output_product(model)
    before = node.input_value(0)
    positions = ops.parameter([-1], np.int64, name=SAMPLED)
    positions.output(0).set_names({SAMPLED})
    gathered = ops.gather(before, positions, ops.constant(np.int64(0)))
    node.input(0).replace_source_output(gathered.output(0))
    model.add_parameters([positions])
    model.validate_nodes_and_infer_types()
    return before.get_node(), positions


def _residual_stream(normed: Any) -> list[Any]:
    """The sums after each layer, first to last, given the norm that reads the last one. Each layer adds twice: its attention,
    then its feed-forward part."""
    hidden = normed.get_output_partial_shape(0)[-1]
    node = normed
    while not _is_sum(node, hidden):  # down the norm's factors to what is normed
        inputs = [i.get_node() for i in node.input_values() if _is_wide(i.get_partial_shape(), hidden)]
        onward = [n for n in inputs if constant_value(n) is None]
        if not onward:
            raise ModelError("this model's layers can't be told apart, so a draft head can't be used with it")
        node = onward[0]
    sums = [node]
    while before := [i.get_node() for i in sums[-1].input_values() if _is_sum(i.get_node(), hidden)]:
        sums.append(before[0])
    return sums[::2][::-1]


def _is_sum(node: Any, hidden: Any) -> bool:
    return node.get_type_name() == "Add" and _is_wide(node.get_output_partial_shape(0), hidden)


def _is_wide(shape: Any, hidden: Any) -> bool:
    return bool(shape.rank.is_static and shape.rank.get_length() > 1 and shape[-1] == hidden)


def _tap(model: ov.Model, stream: Sequence[Any], layers: Sequence[int], positions: Any) -> None:
    if max(layers) >= len(stream):
        raise ModelError(f"the draft head reads layer {max(layers)}, this model has {len(stream)}")
    model.add_results([ops.result(ops.gather(stream[n], positions, ops.constant(np.int64(0)))) for n in layers])
    model.validate_nodes_and_infer_types()
