"""A model's shape from a Hugging Face config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headway.errors import ModelError
from headway.plan.quantized import bits_of
from headway.plan.shape import Bits, Experts, Linear, Mla, ModelShape

Json = dict[str, Any]

# Decoders with gated MLPs whose config says all that the shape needs. Anything else could be read, and wrongly.
KNOWN = frozenset([
    "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5",
    "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "phi3", "gemma2", "gemma3", "gemma3_text", "smollm3",
    "granite", "olmo2", "olmoe", "deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25", "glm4",
    "glm4_moe", "glm_moe_dsa", "gpt_oss", "minimax_m2", "ministral3", "seed_oss",
])  # fmt: skip


def read_config(source: Path | str, name: str = "") -> ModelShape:
    """The shape of a config.json, given as a path or as its text. Raises ModelError (one line) if it can't be used."""
    where, text = _text(source)
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ModelError(f"{where}: not JSON ({error}); a Hugging Face config.json is asked for") from None
    if not isinstance(config, dict):
        raise ModelError(f"{where}: not a JSON object; a Hugging Face config.json is asked for")
    return shape_of(config, name or str(config.get("_name_or_path") or "") or where, where)


def shape_of(config: Json, name: str, where: str) -> ModelShape:
    """The shape that a parsed config describes. `where`: what errors call it."""
    quantization = config.get("quantization_config") or (config.get("text_config") or {}).get("quantization_config")
    outer, config = config, {**config, **(config.get("text_config") or {})}
    kind = str(config.get("model_type", ""))
    if kind not in KNOWN:
        known = outer.get("architectures") or [kind or "(none named)"]
        raise ModelError(
            f"{where}: the architecture {known[0]!s:.60} (model_type {kind!s:.40}) isn't one that headway can plan; "
            f"known are {', '.join(sorted(KNOWN))}"
        )
    read = _Reader(config, where)
    hidden, heads, layers = read.count("hidden_size"), read.count("num_attention_heads"), read.count("num_hidden_layers")
    types = config.get("layer_types") or []
    linear = _linear(read, layers, types)
    window, window_layers = _window(config, layers, types)
    mla = _mla(read) if config.get("kv_lora_rank") else None
    experts = _experts(read, layers)
    kv_heads = read.count("num_key_value_heads", heads)
    return ModelShape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=read.count("head_dim", hidden // heads),
        intermediate=read.count("intermediate_size", 0) if experts is None or experts.layers < layers else 0,
        vocabulary=read.count("vocab_size"),
        tied=bool(config.get("tie_word_embeddings", kind.startswith("gemma"))),
        gated_attention=bool(config.get("attn_output_gate", kind == "qwen3_next")),
        window=window,
        window_layers=window_layers,
        mla=mla,
        experts=experts,
        linear=linear,
        bits=bits_of(quantization, config, where) if quantization else Bits(*(_bits(config),) * 5),
        context=read.count("max_position_embeddings", 0),
    )


def _text(source: Path | str) -> tuple[str, str]:
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return "config.json", source
    path = Path(source)
    path = path / "config.json" if path.is_dir() else path
    try:
        return str(path), path.read_text("utf-8")
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path}: not text; a Hugging Face config.json is asked for") from None


def _bits(config: Json) -> float:
    kind = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    return 32.0 if "32" in kind else 16.0


def _window(config: Json, layers: int, types: list[str]) -> tuple[int, int]:
    """Window and how many layers have it; (0, 0) if none."""
    window = config.get("sliding_window") or 0
    if not window or config.get("use_sliding_window") is False:
        return 0, 0
    if types:
        return int(window), types.count("sliding_attention")
    pattern = config.get("sliding_window_pattern") or (2 if config["model_type"] == "gemma2" else 0)
    return int(window), layers - layers // pattern if pattern else layers


def _mla(read: _Reader) -> Mla:
    return Mla(
        kv_rank=read.count("kv_lora_rank"),
        q_rank=read.count("q_lora_rank", 0),
        nope_dim=read.count("qk_nope_head_dim"),
        rope_dim=read.count("qk_rope_head_dim"),
        value_dim=read.count("v_head_dim"),
        index_heads=read.count("index_n_heads", 0),
        index_dim=read.count("index_head_dim", 0),
        index_topk=read.count("index_topk", 0),
    )


def _experts(read: _Reader, layers: int) -> Experts | None:
    total = read.first("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
    if total <= 1:
        return None
    width = read.first("moe_intermediate_size", "intermediate_size")
    every = max(1, read.count("decoder_sparse_step", read.count("moe_layer_freq", 1)))
    dense = read.count("first_k_dense_replace", 0) or len(read.config.get("mlp_only_layers") or [])
    shared = read.count("shared_expert_intermediate_size", read.count("shared_intermediate_size", 0))
    return Experts(
        total=total,
        active=read.first("num_experts_per_tok", "experts_per_token", "moe_topk", "moe_k"),
        width=width,
        layers=(layers - dense) // every,
        shared_width=shared or read.count("n_shared_experts", 0) * width,
    )


def _linear(read: _Reader, layers: int, types: list[str]) -> Linear | None:
    interval = read.count("full_attention_interval", 0)
    number = types.count("linear_attention") if types else (layers - layers // interval if interval else 0)
    if not number:
        return None
    return Linear(
        layers=number,
        key_heads=read.count("linear_num_key_heads"),
        value_heads=read.count("linear_num_value_heads"),
        key_dim=read.count("linear_key_head_dim"),
        value_dim=read.count("linear_value_head_dim"),
    )


class _Reader:
    def __init__(self, config: Json, where: str) -> None:
        self.config = config
        self._where = where

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number >= 0; null and a missing key are the default."""
        value = self.config.get(key)
        if value is None:
            if default is None:
                raise ModelError(f"{self._where}: {key} is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (default is None and value == 0):
            raise ModelError(f"{self._where}: {key} has to be a whole number above 0, not {value!s:.40}")
        return value

    def first(self, *keys: str) -> int:
        return next((self.count(key) for key in keys if self.config.get(key)), 0)
