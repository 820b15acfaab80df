"""A model that says a part of its vocabulary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from gguf import GGUFReader, GGUFWriter
from openvino import opset13 as ops

from headway.engines.graph import vocab_size
from headway.engines.shortlist import NEVER, OUTPUT_TOKENS, output_tokens, restrict
from headway.engines.weights import int8
from headway.errors import ModelError

VOCABULARY, HIDDEN = 200, 32


def model() -> ov.Model:
    states = ops.parameter([-1, -1, HIDDEN], np.float32, name="states")
    matrix = np.random.default_rng(0).normal(size=(VOCABULARY, HIDDEN)).astype(np.float32)
    return ov.Model([ops.matmul(states, int8(matrix), False, True)], [states])


def logits(of: ov.Model) -> np.ndarray:
    states = np.random.default_rng(1).normal(size=(2, 3, HIDDEN)).astype(np.float32)
    return np.array(ov.Core().compile_model(of, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([states])[0])


def test_its_tokens_have_the_logits_they_had_and_the_others_are_never_said() -> None:
    whole = logits(model())
    cut = model()
    said = [0, 3, 64, 65, 199]
    restrict(cut, said)
    few = logits(cut)
    assert vocab_size(cut) == VOCABULARY
    assert np.array_equal(few[..., said], whole[..., said])
    others = np.setdiff1d(np.arange(VOCABULARY), said)
    assert (few[..., others] == NEVER).all()


def test_tokens_that_the_model_doesnt_have() -> None:
    with pytest.raises(ModelError, match="names token 200, the model has 200"):
        restrict(model(), [5, 200])


def test_the_list_is_read_from_the_file(tmp_path: Path) -> None:
    def file(name: str, *keys: tuple[str, list[int]]) -> Path:
        writer = GGUFWriter(str(tmp_path / name), "llama")
        writer.add_block_count(1)
        for key, value in keys:
            writer.add_array(key, value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        assert GGUFReader(tmp_path / name).fields
        return tmp_path / name

    assert output_tokens(file("none.gguf")) is None
    assert output_tokens(file("some.gguf", (OUTPUT_TOKENS, [9, 2, 2]))) == [2, 9]
    with pytest.raises(ModelError, match="has to be a list of token ids"):
        output_tokens(file("bad.gguf", (OUTPUT_TOKENS, [-1, 2])))
