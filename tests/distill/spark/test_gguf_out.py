"""The file of a smaller model."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from headway.catalog.gguf_file import inspect
from headway.distill.spark.gguf_out import KINDS, interleaved, write_gguf

from .tiny import HEADS, HIDDEN, SHAPES, write_teacher

TRANSFORMERS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def weights(layers: int) -> dict[str, np.ndarray]:
    r = np.random.default_rng(1)
    made = {"norm.weight": np.full(HIDDEN, 2.0, np.float32)}
    for i in range(layers):
        made[f"layers.{i}.input_layernorm.weight"] = np.full(HIDDEN, 3.0 + i, np.float32)
        made[f"layers.{i}.post_attention_layernorm.weight"] = np.full(HIDDEN, 4.0 + i, np.float32)
        for name, shape in SHAPES.items():
            made[f"layers.{i}.{TRANSFORMERS[name]}.weight"] = r.normal(size=shape).astype(np.float32)
    return made


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_it_is_the_teachers_file_with_other_layers(tmp_path: Path, kind: str) -> None:
    teacher = write_teacher(tmp_path / "teacher.gguf")
    made = weights(2)
    write_gguf(tmp_path / "spark.gguf", teacher, made, 2, kind, name="spark", description="small")
    info = inspect(tmp_path / "spark.gguf")
    assert (info.block_count, info.context_length, info.vocab_size, info.licence) == (2, 256, 96, "mit")
    assert info.quantization[0][0] == kind.upper()
    tensors = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(tmp_path / "spark.gguf").tensors}
    old = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(teacher).tensors}
    off = {"q8_0": 0.02, "q5_1": 0.12, "q4_1": 0.25}[kind]
    assert np.abs(tensors["token_embd.weight"] - old["token_embd.weight"]).max() < off
    assert np.array_equal(tensors["output_norm.weight"], made["norm.weight"])
    assert np.array_equal(tensors["blk.1.ffn_norm.weight"], made["layers.1.post_attention_layernorm.weight"])
    assert np.abs(tensors["blk.1.ffn_down.weight"] - made["layers.1.mlp.down_proj.weight"]).max() < off
    turned = interleaved(made["layers.0.self_attn.q_proj.weight"], HEADS)
    assert np.abs(tensors["blk.0.attn_q.weight"] - turned).max() < off
    assert len(tensors) == 2 + 2 * 9


def test_the_rotary_halves_of_each_head_alternate() -> None:
    rows = np.arange(8, dtype=np.float32).reshape(8, 1)  # two heads of four: 0 1 | 2 3 and 4 5 | 6 7
    assert interleaved(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert interleaved(rows[:, 0], 2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7], "a bias too"
