"""Copies of a GGUF for OpenVINO GenAI's reader, which knows few types of tensors."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, GGUFWriter
from numpy.typing import NDArray

logging.getLogger("gguf.gguf_writer").setLevel(logging.WARNING)  # it tells of every file

READABLE = frozenset({Type.F32, Type.F16, Type.Q4_0, Type.Q4_1, Type.Q8_0, Type.Q4_K, Type.Q6_K})
"""By OpenVINO GenAI 2026.4's reader."""
READABLE_NAMES = frozenset(kind.name for kind in READABLE)
FILE_TYPE = "general.file_type"
ENDS = ("token_embd.weight", "output.weight")
NOT_AT_THE_ENDS = frozenset({Type.Q4_0, Type.Q4_1})
"""Types whose zero points it rounds: products get the file's own weights afterwards, but the table of embeddings doesn't."""


def is_readable(path: Path) -> bool:
    return all(_is_readable(tensor.name, tensor.tensor_type) for tensor in GGUFReader(path).tensors)


def readable_copy(path: Path, target: Path) -> None:
    """The model, with what can't be read in 8 bits instead. Products get the file's own weights later (engines/weights.py);
    the table of embeddings stays at 8 bits. Raises OSError."""
    reader = GGUFReader(path)
    writer = _writer(reader, target, but={FILE_TYPE})
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)  # the reader looks it up among those that it knows
    for tensor in reader.tensors:
        if _is_readable(tensor.name, tensor.tensor_type):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        add_values(writer, tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type), Type.Q8_0)
    write(writer)


def copy_without_tensors(path: Path, target: Path) -> None:
    """All that a tokenizer needs. Raises OSError."""
    write(_writer(GGUFReader(path), target))


def copy_facts(reader: GGUFReader, writer: GGUFWriter, but: Collection[str] = ()) -> None:
    """The metadata, but for the architecture, which the writer has, and these keys."""
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture" and key not in but:
            writer.add_key_value(key, field.contents(), field.types[0], field.types[1] if len(field.types) > 1 else None)


def architecture_of(reader: GGUFReader) -> str:
    return str(reader.fields["general.architecture"].contents())


def _is_readable(name: str, kind: Type) -> bool:
    return kind in READABLE and not (name in ENDS and kind in NOT_AT_THE_ENDS)


def _writer(reader: GGUFReader, target: Path, but: Collection[str] = ()) -> GGUFWriter:
    writer = GGUFWriter(str(target), architecture_of(reader))
    copy_facts(reader, writer, but)
    return writer


def add_values(writer: GGUFWriter, name: str, values: NDArray[np.float32], kind: Type) -> None:
    """A vector stays as it is; a matrix is quantized, to f16 where a block of `kind` doesn't divide its rows."""
    values = np.ascontiguousarray(values, np.float32)
    if values.ndim < 2:
        writer.add_tensor(name, values)
        return
    if values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]:
        kind = Type.F16
    writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)


def write(writer: GGUFWriter) -> None:
    """All that was added, and the end of the file. Raises OSError."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
