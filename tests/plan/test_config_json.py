"""Shapes of public models, against what their makers say of them."""

from __future__ import annotations

import json

import pytest

from headway.errors import ModelError, UsageError
from headway.plan.config_json import read_config
from headway.plan.known import entries, find, known_shape
from headway.plan.quantized import named_bits


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("llama-3.1-8b", 8.03, 7.5),
        ("llama-3.1-405b", 405.9, 403.7),
        ("qwen3-30b-a3b", 30.5, 3.0),
        ("qwen3-235b-a22b", 235.1, 21.5),
        ("deepseek-v3", 671.0, 36.6),
        ("gpt-oss-120b", 116.8, 5.1),
        ("gpt-oss-20b", 20.9, 3.6),
        ("mixtral-8x7b", 46.7, 12.8),
        ("minimax-m2.5", 228.7, 10.4),
    ],
)
def test_parameters_in_all_and_of_a_token(name: str, total: float, active: float) -> None:
    shape = known_shape(name)
    assert shape.total_weights / 1e9 == pytest.approx(total, rel=0.01)
    assert shape.active_weights / 1e9 == pytest.approx(active, rel=0.02)


def test_every_known_model_can_be_read_and_names_its_source() -> None:
    for name, entry in entries().items():
        assert known_shape(name).weight_bytes > 0
        assert entry["source"].startswith("config.json of https://")


def test_weights_as_published_take_what_their_files_take() -> None:
    assert known_shape("gpt-oss-120b").weight_bytes == pytest.approx(65.2e9, rel=0.01)  # MXFP4 experts, all else in 16 bits
    assert known_shape("kimi-k2.5").weight_bytes == pytest.approx(594e9, rel=0.01)  # INT4 experts in groups of 32


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8.0),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}},
            8.0,
        ),
    ],
)
def test_bits_of_a_weight_count_its_scales(quantization: dict[str, object], bits: float) -> None:
    config = entries()["qwen3-8b"]["config"] | {"quantization_config": quantization}
    assert read_config(json.dumps(config)).bits.mlp == bits


def test_windowed_layers_keep_their_window() -> None:
    shape = known_shape("gpt-oss-120b")
    assert shape.kv_bytes_of(10_000) == (18 * 10_000 + 18 * 128) * 2 * 8 * 64 * 2


def test_linear_attention_keeps_a_state() -> None:
    shape = known_shape("qwen3.5-397b-a17b")
    assert shape.attention_layers == 15
    assert shape.kv_bytes_of(0) == 45 * 64 * 128 * 128 * 4


def test_experts_touched_are_all_in_the_end_and_k_for_one_token() -> None:
    shape = known_shape("deepseek-v3")
    assert shape.experts_touched(1) == pytest.approx(8)
    assert shape.experts_touched(1000) == pytest.approx(256)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "nemotron_h"}, "isn't one that headway can plan"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers has to be a whole number"),
        ({"quantization_config": {"quant_method": "aqlm"}}, "quantization aqlm isn't known"),
    ],
)
def test_a_config_it_cant_use_is_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        read_config(json.dumps(entries()["qwen3-8b"]["config"] | change))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["{", '{"a": ', "{]"])
def test_what_is_no_json_is_said(text: str) -> None:
    with pytest.raises(ModelError, match="not JSON"):
        read_config(text)


def test_names_are_found_without_their_organisation_and_ending() -> None:
    assert find("meta-llama/Meta-Llama-3.1-8B-Instruct") == "llama-3.1-8b"
    assert find("Qwen/Qwen3-235B-A22B-FP8") == "qwen3-235b-a22b"
    with pytest.raises(UsageError, match=r"did you mean .*llama-3.1-8b"):
        known_shape("llama-3.1-7b")


def test_a_named_precision_leaves_the_head_alone() -> None:
    shape = known_shape("llama-3.1-70b")
    assert shape.with_bits(named_bits("fp8", has_experts=False)).weight_bytes == pytest.approx(72.7e9, rel=0.01)
