"""Features of the real model: they cost no bit of its logits, and are what its layers give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from numpy.typing import NDArray
from openvino import opset13 as ops

from headway.catalog.local import open_local
from headway.config import EngineSettings, Settings
from headway.engines import open_engine
from headway.engines.base import BatchRow, Engine, start_padded
from headway.engines.graph import read_ends
from headway.errors import ModelError
from headway.runtime.opened import graph_folder

from .small_head import small_head

pytestmark = pytest.mark.model

TAPS = (9, 19, 29)
TOKENS = [1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198, 504, 3575, 282, 4649]
HIDDEN = 576

Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def folder(smollm2: Path) -> Path:
    return graph_folder(open_local(smollm2), Settings(), lambda what: None)


@pytest.fixture(scope="module")
def tapped(folder: Path) -> Iterator[Engine]:
    engine = open_engine(folder, EngineSettings(kv_memory=20 * 2**20), 8192, 8192, taps=TAPS)
    yield engine
    engine.close()


def run(engine: Engine, sampled: int = len(TOKENS)) -> Floats:
    start_padded(engine, [BatchRow(TOKENS, 0, [0, 1, 2], sampled)])
    return engine.wait().copy()


def test_taps_leave_the_logits_as_they_are_to_the_last_bit(folder: Path, tapped: Engine) -> None:
    plain = open_engine(folder, EngineSettings(kv_memory=20 * 2**20), 8192, 8192)
    try:
        assert np.array_equal(run(tapped), run(plain))
        with pytest.raises(RuntimeError, match="without layers to tap"):
            plain.features([0])
    finally:
        plain.close()


def test_the_last_layers_features_give_the_logits(folder: Path, tapped: Engine) -> None:
    logits = run(tapped)
    last = tapped.features(range(len(TOKENS)))[:, -HIDDEN:]
    ends, _ = read_ends(folder)
    normed = last / np.sqrt(np.mean(last * last, 1, keepdims=True) + 1e-5) * ends.norm
    again = normed @ ends.output.T
    assert np.mean(again.argmax(1) == logits.argmax(1)) >= 0.9
    assert np.corrcoef(again.ravel(), logits.ravel())[0, 1] > 0.999


def test_every_layers_features_are_its_own(folder: Path, tapped: Engine) -> None:
    """Beside the model as it was before it was paged, read where its layers end by their names."""
    run(tapped)
    features = tapped.features(range(len(TOKENS))).reshape(len(TOKENS), len(TAPS), HIDDEN)
    model = ov.Core().read_model(folder / "openvino_model.xml")
    named = {op.get_friendly_name(): op for op in model.get_ordered_ops()}
    ends = [named[f"model.layers.self_attn.add1.layer{layer}"] for layer in TAPS]
    model.add_results([ops.result(end.output(0)) for end in ends])
    model.validate_nodes_and_infer_types()
    request = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    n = len(TOKENS)
    inputs = {
        "input_ids": np.array([TOKENS]),
        "attention_mask": np.ones((1, n), np.int64),
        "position_ids": np.arange(n)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    request.infer({name: inputs[name] for i in model.inputs for name in i.get_names()})
    for i in range(len(TAPS)):
        expected = request.get_output_tensor(1 + i).data.reshape(n, HIDDEN)
        for k in range(n):
            assert np.corrcoef(features[k, i], expected[k])[0, 1] > 0.999, (TAPS[i], k)
    assert not np.allclose(features[:, 0], features[:, 1], rtol=0.1)


def test_features_are_those_of_the_rows_asked_for(tapped: Engine) -> None:
    run(tapped)
    whole = tapped.features(range(len(TOKENS)))
    assert np.array_equal(tapped.features([7, 2]), whole[[7, 2]])
    run(tapped, sampled=3)
    assert np.array_equal(tapped.features([0, 1, 2]), whole[-3:])


def test_the_ends_of_the_model_are_found(folder: Path) -> None:
    ends, layers = read_ends(folder)
    assert layers == 30
    assert ends.embeddings.shape == ends.output.shape == (49152, HIDDEN)
    assert ends.norm.shape == (HIDDEN,)
    assert np.corrcoef(ends.embeddings[:200].ravel(), ends.output[:200].ravel())[0, 1] > 0.95, "one table, rounded twice"


def test_layers_that_the_model_has_not_are_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="reads layer 30, this model has 30"):
        open_engine(folder, EngineSettings(kv_memory=20 * 2**20), 8192, 8192, taps=(9, 30))


def test_a_head_of_another_model_is_refused_when_it_is_loaded(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    small_head().save(path)
    with pytest.raises(ModelError, match=r"other.safetensors belongs to another model: .* 64, this model has 576"):
        open_engine(folder, EngineSettings(kv_memory=20 * 2**20), 8192, 8192, path)


def test_a_graph_of_another_form_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't be loaded") as refused:
        read_ends(tmp_path)
    assert "\n" not in str(refused.value)
    x = ops.parameter([-1, -1, 8], np.float32)
    ov.save_model(ov.Model([ops.result(ops.relu(x))], [x]), tmp_path / "openvino_model.xml")
    with pytest.raises(ModelError, match="is not a matrix product over the vocabulary"):
        read_ends(tmp_path)
    product = ops.matmul(x, ops.constant(np.ones((8, 30), np.float32)), False, False)
    ov.save_model(ov.Model([ops.result(product)], [x]), tmp_path / "openvino_model.xml")
    with pytest.raises(ModelError, match="not of the usual form, so a draft head can't be used with it"):
        read_ends(tmp_path)
