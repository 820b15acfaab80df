"""Copies for a reader that knows few types."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from distill.spark.tiny import VOCABULARY, write_teacher

from headway.catalog.gguf_copy import copy_without_tensors, is_readable, readable_copy
from headway.catalog.gguf_file import inspect


def quantized(source: Path, target: Path, kind: gguf.GGMLQuantizationType) -> Path:
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(str(target), "llama")
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            writer.add_key_value(key, field.contents(), field.types[0], field.types[1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        if len(tensor.shape) < 2:
            writer.add_tensor(tensor.name, tensor.data)
        else:
            writer.add_tensor(tensor.name, gguf.quantize(tensor.data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@pytest.mark.parametrize(("kind", "readable"), [("Q8_0", True), ("Q5_1", False), ("Q4_1", False), ("F16", True)])
def test_what_the_reader_does_not_know_is_written_in_8_bits(tmp_path: Path, kind: str, readable: bool) -> None:
    path = quantized(write_teacher(tmp_path / "f32.gguf"), tmp_path / "model.gguf", gguf.GGMLQuantizationType[kind])
    assert is_readable(path) == readable, "Q4_1 is read, but not at the ends"
    readable_copy(path, tmp_path / "copy.gguf")
    assert is_readable(tmp_path / "copy.gguf")
    before = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    after = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(tmp_path / "copy.gguf").tensors}
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert np.abs(values - after[name]).max() < 0.01, name
    assert inspect(tmp_path / "copy.gguf").licence == "mit"


def test_a_copy_without_tensors_has_the_vocabulary(tmp_path: Path) -> None:
    copy_without_tensors(write_teacher(tmp_path / "f32.gguf"), tmp_path / "facts.gguf")
    reader = gguf.GGUFReader(tmp_path / "facts.gguf")
    assert len(reader.fields["tokenizer.ggml.tokens"].contents()) == VOCABULARY
    assert not reader.tensors
