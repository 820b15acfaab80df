"""A model's shape from a GGUF file: its header's keys, and the exact bytes of its tensors."""

from __future__ import annotations

from pathlib import Path

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from headway.catalog.gguf_header import GgufHeader, read_header
from headway.errors import ModelError
from headway.plan.shape import Bits, Experts, Mla, ModelShape

_EXPERTS = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps")
_KINDS = {
    "attention": ("attn_",),
    "experts": _EXPERTS,
    "mlp": ("ffn_gate.", "ffn_up.", "ffn_down.", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"),
    "head": ("output.weight", "token_embd"),
}


def read_gguf(path: Path) -> ModelShape:
    """The shape of a GGUF; its KV cache is taken as 16 bits. Raises ModelError (one line) if it isn't one, or lacks a key."""
    header = read_header(path)
    name = str(header.values.get("general.architecture", ""))
    keys = _Keys(header, name)
    hidden, heads, layers = keys.count("embedding_length"), keys.count("attention.head_count"), keys.count("block_count")
    latent = keys.count("attention.kv_lora_rank", 0)
    rope = keys.count("rope.dimension_count", 0)
    head_dim = keys.count("attention.key_length", hidden // heads)
    window = keys.count("attention.sliding_window", 0)
    names = {tensor.name for tensor in header.tensors}
    experts = _experts(keys, names, layers)
    return ModelShape(
        name=str(header.values.get("general.name") or path.stem),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=keys.count("attention.head_count_kv", heads),
        head_dim=head_dim,
        intermediate=keys.count("feed_forward_length", 0),
        vocabulary=_vocabulary(header),
        tied="output.weight" not in names,
        window=window,
        window_layers=_windowed(name, layers) if window else 0,
        mla=Mla(
            kv_rank=latent,
            q_rank=keys.count("attention.q_lora_rank", 0),
            nope_dim=(keys.count("attention.key_length_mla", head_dim)) - rope,
            rope_dim=rope,
            value_dim=keys.count("attention.value_length_mla", keys.count("attention.value_length", head_dim)),
        )
        if latent
        else None,
        experts=experts,
        bits=_bits(header),
        context=keys.count("context_length", 0),
        weight_sum=sum(_size(tensor.shape, tensor.type) for tensor in header.tensors),
    )


def _experts(keys: _Keys, names: set[str], layers: int) -> Experts | None:
    total = keys.count("expert_count", 0)
    if total <= 1:
        return None
    width = keys.count("expert_feed_forward_length", keys.count("feed_forward_length", 0))
    shared = keys.count("expert_shared_feed_forward_length", keys.count("expert_shared_count", 0) * width)
    with_experts = sum(any(f"blk.{layer}.{part}.weight" in names for part in _EXPERTS) for layer in range(layers))
    return Experts(total, keys.count("expert_used_count"), width, with_experts, shared)


def _windowed(architecture: str, layers: int) -> int:
    """Layers with a sliding window: every other one in gpt-oss and Gemma 2, five of six in Gemma 3, else all."""
    if architecture in {"gpt-oss", "gemma2"}:
        return layers - layers // 2
    return layers - layers // 6 if architecture == "gemma3" else layers


def _bits(header: GgufHeader) -> Bits:
    """Mean bits of a weight by kind of tensor, its block scales included."""
    found = {}
    for kind, marks in _KINDS.items():
        chosen = [tensor for tensor in header.tensors if any(mark in tensor.name for mark in marks) and len(tensor.shape) > 1]
        weights = sum(_elements(tensor.shape) for tensor in chosen)
        found[kind] = 8 * sum(_size(tensor.shape, tensor.type) for tensor in chosen) / weights if weights else 16.0
    return Bits(**found, kv=16.0, integer=True)


def _vocabulary(header: GgufHeader) -> int:
    table = next((tensor for tensor in header.tensors if tensor.name == "token_embd.weight"), None)
    if table is None:
        raise ModelError(f"{header.path}: has no token_embd.weight, so it isn't a language model")
    return int(table.shape[-1])


def _elements(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _size(shape: tuple[int, ...], kind: int) -> int:
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    return int(_elements(shape) // block * size)


class _Keys:
    def __init__(self, header: GgufHeader, architecture: str) -> None:
        self._header, self._architecture = header, architecture

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number; of an array (one a layer) the largest."""
        name = f"{self._architecture}.{key}"
        value = self._header.values.get(name)
        if value is None and name in self._header.arrays:
            value = max(self._header.numbers(name), default=0)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if value is None and default is not None:
            return default
        raise ModelError(f"{self._header.path}: {name} is missing or no whole number")
