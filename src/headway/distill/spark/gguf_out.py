"""Write a smaller model as a GGUF: the teacher's file with other layers in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from numpy.typing import NDArray

from headway.catalog.gguf_copy import add_values, architecture_of, copy_facts, write

KINDS = {
    "q8_0": (GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
    "q5_1": (GGMLQuantizationType.Q5_1, gguf.LlamaFileType.MOSTLY_Q5_1),
    "q4_1": (GGMLQuantizationType.Q4_1, gguf.LlamaFileType.MOSTLY_Q4_1),
}
"""Of quantization, by their names on the command line: those which the gguf package writes, with a zero point or 8 bits."""
_OWN = ("general.name", "general.description", "general.file_type", "general.size_label")
_TURNED = {"llama": ("attn_q", "attn_k")}
"""Where the rotary halves of a head lie interleaved in a GGUF, unlike in Transformers."""


def write_gguf(
    path: Path,
    teacher: Path,
    weights: Mapping[str, NDArray[np.float32]],
    num_layers: int,
    kind: str,
    *,
    name: str,
    description: str,
    facts: Mapping[str, str | Sequence[int]] | None = None,
) -> None:
    """weights: of the layers and the last norm, by their names in Transformers without `model.`. Embeddings and output matrix
    are the teacher's. kind: of KINDS, for matrices; rows that its blocks don't divide are written as f16. facts: more of the
    file's metadata. Raises OSError."""
    reader = GGUFReader(teacher)
    architecture = architecture_of(reader)
    quantized, file_type = KINDS[kind]
    writer = GGUFWriter(str(path), architecture)
    copy_facts(reader, writer, {*_OWN, f"{architecture}.block_count"})
    writer.add_block_count(num_layers)
    writer.add_name(name)
    writer.add_description(description)
    writer.add_file_type(file_type)
    for key, fact in (facts or {}).items():
        if isinstance(fact, str):
            writer.add_string(key, fact)
        else:
            writer.add_array(key, list(fact))
    for tensor in reader.tensors:
        if not tensor.name.startswith("blk.") and not tensor.name.startswith("output_norm"):
            add_values(writer, tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type), quantized)
    for key, values in _named(weights, architecture, reader, num_layers):
        add_values(writer, key, values, quantized)
    write(writer)


def _named(
    weights: Mapping[str, NDArray[np.float32]], architecture: str, reader: GGUFReader, num_layers: int
) -> list[tuple[str, NDArray[np.float32]]]:
    names = gguf.get_tensor_name_map(_architecture(architecture), num_layers)
    heads = int(reader.fields[f"{architecture}.attention.head_count"].contents())
    few = reader.fields.get(f"{architecture}.attention.head_count_kv")
    heads_of = {"attn_q": heads, "attn_k": int(few.contents()) if few is not None else heads}
    found = []
    for key, values in weights.items():
        stem, _, ending = f"model.{key}".rpartition(".")
        name = names.get_name(stem)
        assert name is not None, key
        part = name.rpartition(".")[2]
        if part in _TURNED.get(architecture, ()):
            values = interleaved(values, heads_of[part])
        found.append((f"{name}.{ending}", values))
    return found


def interleaved(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """The rows of a query or key matrix (or bias) [heads * size, ...], whose two rotary halves lie one after the other in each
    head, with the halves alternating: what a Llama's GGUF has."""
    size = len(values) // heads
    return values.reshape(heads, 2, size // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def _architecture(name: str) -> gguf.MODEL_ARCH:
    return next(arch for arch, known in gguf.MODEL_ARCH_NAMES.items() if known == name)
