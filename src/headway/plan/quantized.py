"""Bits a weight really takes, from the quantization_config of a Hugging Face config.json."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.errors import ModelError
from headway.plan.shape import Bits

Json = dict[str, Any]

NVFP4 = 4.5  # 16 values share an 8-bit scale
MXFP4 = 4.25  # 32 values share an 8-bit scale
_SCALE, _ZERO = 16.0, 4.0  # bits of a group's scale and of its packed zero point (gptq, awq)

# A precision asked for by name: bits of (attention, MLP, experts, head, KV). Vendors' fp4 checkpoints of mixtures of experts
# leave attention in 16 bits; the head stays in 16.
NAMED: dict[str, float] = {
    "bf16": 16.0,
    "fp16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "fp4": NVFP4,
    "nvfp4": NVFP4,
    "mxfp4": MXFP4,
    "int4": 4.5,
}


def bits_of(quantization: Json, config: Json, where: str) -> Bits:
    """Bits by kind of tensor. Raises ModelError for a method it doesn't know, rather than take 16 bits for it."""
    method = str(quantization.get("quant_method") or quantization.get("quant_algo") or "").lower()
    bits = _weight_bits(method, quantization, where)
    skipped = (
        quantization.get("modules_to_not_convert") or quantization.get("ignore") or quantization.get("exclude_modules") or []
    )
    kv = 8.0 if "8" in str(quantization.get("kv_cache_quant_algo") or quantization.get("kv_cache_scheme") or "") else 16.0
    all_attention = any(_covers_all(pattern, "self_attn") for pattern in skipped)
    all_shared = any("shared_expert" in pattern for pattern in skipped)
    has_experts = bool(config.get("n_routed_experts") or config.get("num_local_experts") or config.get("num_experts"))
    mlp = any(pattern.startswith("re:") and "gate|up" in pattern for pattern in skipped)
    only_experts = method == "mxfp4" and has_experts
    plain = 16.0
    return Bits(
        attention=plain if all_attention or only_experts else bits,
        mlp=plain if only_experts or mlp or (has_experts and all_shared) else bits,
        experts=bits,
        head=plain,
        kv=kv,
        integer=bits < 8 and not _is_float(method, quantization),
    )


def named_bits(name: str, *, has_experts: bool, mxfp4_experts: bool = False) -> Bits:
    """Bits of a precision asked for by name (`NAMED`). fp4 mixtures of experts keep attention in 16 bits."""
    bits = NAMED[name]
    kv = 16.0 if bits == 16.0 else 8.0
    if mxfp4_experts:
        return Bits(16.0, 16.0, MXFP4, 16.0, kv)
    if has_experts and name in {"fp4", "nvfp4", "mxfp4"}:
        return Bits(16.0, bits, bits, 16.0, kv)
    if name == "int4":
        return replace(Bits(integer=True), experts=bits) if has_experts else Bits(bits, bits, bits, integer=True)
    return Bits(bits, bits, bits, 16.0, kv)


def _covers_all(pattern: str, part: str) -> bool:
    """Whether an ignore pattern leaves out `part` of every layer ('re:.*self_attn.*', 'model.layers.*.self_attn')."""
    return part in pattern and ("*" in pattern or pattern.strip(".") == part)


def _is_float(method: str, quantization: Json) -> bool:
    groups = (quantization.get("config_groups") or {}).values()
    return "fp4" in method or any((group.get("weights") or {}).get("type") == "float" for group in groups)


def _weight_bits(method: str, quantization: Json, where: str) -> float:
    if method in {"gptq", "awq", "gptq_marlin", "awq_marlin"}:
        bits = float(quantization.get("bits") or quantization.get("w_bit") or 4)
        group = int(quantization.get("group_size") or quantization.get("q_group_size") or 128)
        symmetric = method.startswith("gptq") and bool(quantization.get("sym", True))
        return bits + ((_SCALE + (0.0 if symmetric else _ZERO)) / group if group > 0 else 0.0)
    if "fp8" in method or "float8" in method:
        return 8.0
    if "mxfp4" in method:
        return MXFP4
    if "nvfp4" in method or "fp4" in method:
        return NVFP4
    if method in {"compressed-tensors", "modelopt", "modelopt_fp4", "quark"}:
        return _group_bits(quantization, where)
    raise ModelError(
        f"{where}: quantization {method!s:.40} isn't known; "
        "known are awq, compressed-tensors, fp8, gptq, modelopt, mxfp4 and nvfp4"
    )


def _group_bits(quantization: Json, where: str) -> float:
    """Compressed-tensors and ModelOpt: the first group's weights say how many bits and how large the groups of a scale are."""
    algorithm = str(quantization.get("quant_algo") or "").lower()
    if algorithm:
        return _weight_bits(algorithm, {}, where)
    groups = quantization.get("config_groups") or {}
    weights = next((group.get("weights") for group in groups.values() if group.get("weights")), None)
    if weights is None:
        raise ModelError(f"{where}: quantization_config.config_groups names no weights")
    bits = float(weights.get("num_bits") or 16)
    group = weights.get("group_size") or 0
    scale = 8.0 if weights.get("type") == "float" else _SCALE
    return bits + (scale / group if group and group > 0 else 0.0)
