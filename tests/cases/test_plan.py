"""What planners got wrong, by public reports: KV bytes of grouped and latent attention, bytes of quantized weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headway.catalog.gguf_file import inspect
from headway.plan.config_json import read_config
from headway.plan.gguf_shape import read_gguf
from headway.plan.known import known_shape

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def test_kv_bytes_count_kv_heads_not_heads(smollm2: Path) -> None:
    shape = read_gguf(smollm2)
    assert shape.kv_bytes == 2 * 30 * 3 * 64 * 2 == 23_040
    assert shape.kv_bytes_of(8192) == 180 * 2**20
    in_32_bits = replace(shape, bits=replace(shape.bits, kv=32.0))
    assert in_32_bits.kv_bytes_of(8192) == 360 * 2**20


def test_kv_bytes_of_llama_3_8b() -> None:
    assert read_config(json.dumps(LLAMA_8B)).kv_bytes == 131_072


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-r1"])
def test_a_latent_is_kept_once_with_its_rope_part(name: str) -> None:
    assert known_shape(name).kv_bytes == 61 * (512 + 64) * 2 == 70_272


def test_a_latent_in_q8_0_is_what_a_real_log_shows() -> None:
    shape = known_shape("deepseek-v3")
    in_q8_0 = replace(shape, bits=replace(shape.bits, kv=8 * 34 / 32))
    assert in_q8_0.kv_bytes_of(32_768) / 2**20 == pytest.approx(1166.62, abs=0.01)


def test_quantized_linears_beside_embeddings_in_16_bits() -> None:
    config = LLAMA_8B | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    shape = read_config(json.dumps(config))
    assert shape.attention_weights + shape.mlp_weights == pytest.approx(6.98e9, rel=0.001)
    assert 4.12 <= shape.bits.mlp <= 4.16
    assert shape.weight_bytes == pytest.approx(5.7e9, rel=0.01)


def test_a_gguf_is_the_sum_of_its_tensors(smollm2: Path) -> None:
    shape = read_gguf(smollm2)
    assert shape.weight_bytes == inspect(smollm2).tensor_bytes
    assert shape.bits.attention == shape.bits.mlp == 0.625 * 8
    assert shape.total_weights == pytest.approx(134.5e6, rel=0.001)
