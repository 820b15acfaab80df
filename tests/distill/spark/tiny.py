"""A tiny model of the Llama kind with random weights, and answers that one could have given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType

from headway.distill.answers import Answers
from headway.distill.known import Likeliest

VOCABULARY, HIDDEN, INNER, HEADS, FEW_HEADS, LAYERS = 96, 64, 128, 4, 2, 6
SHAPES = {
    "attn_q": (HIDDEN, HIDDEN),
    "attn_k": (HIDDEN * FEW_HEADS // HEADS, HIDDEN),
    "attn_v": (HIDDEN * FEW_HEADS // HEADS, HIDDEN),
    "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (INNER, HIDDEN),
    "ffn_up": (INNER, HIDDEN),
    "ffn_down": (HIDDEN, INNER),
}


def write_teacher(path: Path, layers: int = LAYERS, architecture: str = "llama") -> Path:
    r = np.random.default_rng(0)
    writer = GGUFWriter(str(path), architecture)
    writer.add_name("tiny")
    writer.add_license("mit")
    writer.add_block_count(layers)
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(FEW_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"t{i}" for i in range(VOCABULARY)])
    writer.add_token_types([TokenType.NORMAL] * VOCABULARY)
    writer.add_token_merges([])
    writer.add_eos_token_id(0)

    def add(name: str, *shape: int) -> None:
        values = (0.2 * r.normal(size=shape)).astype(np.float32)
        writer.add_tensor(name, values, raw_dtype=GGMLQuantizationType.F32)

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(HIDDEN, np.float32))

    add("token_embd.weight", VOCABULARY, HIDDEN)
    ones("output_norm.weight")
    for i in range(layers):
        ones(f"blk.{i}.attn_norm.weight")
        ones(f"blk.{i}.ffn_norm.weight")
        for name, shape in SHAPES.items():
            add(f"blk.{i}.{name}.weight", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def answers(sequences: int = 12, seed: int = 0, likeliest: int = 4) -> Answers:
    """Each token is followed by one that is a function of it, which the teacher was nearly sure of."""
    r = np.random.default_rng(seed)
    keep = Likeliest(likeliest)
    tokens: list[int] = []
    sequence: list[int] = []
    prompts: list[np.ndarray] = []
    for number in range(sequences):
        token = int(r.integers(1, VOCABULARY))
        prompts.append(np.array([token, following(token)], np.int32))
        token = following(following(token))
        for _ in range(int(r.integers(6, 20))):
            tokens.append(token)
            sequence.append(number)
            token = following(token)
    known = np.zeros(len(tokens), keep.dtype)
    known["logprobs"] = -np.inf
    known["ids"][:, 0], known["logprobs"][:, 0] = tokens, np.log(0.9)
    known["ids"][:, 1], known["logprobs"][:, 1] = [(t + 1) % VOCABULARY for t in tokens], np.log(0.1)
    half = len(tokens) // 2
    return Answers(np.array(tokens), np.array(sequence), [known[:half], known[half:]], prompts)


def following(token: int) -> int:
    return (5 * token + 7) % VOCABULARY
