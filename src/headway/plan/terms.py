"""The terms of a step's time: each what physics asks for, to be multiplied by one fitted coefficient (`coefficients.json`).

Seconds where a rate is known (bytes over bandwidth, operations over peak); counts x 1e-6 where it is a latency, so that its
coefficient is in microseconds. A row's context is taken as its prompt and half of its answer, the mean over its life.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.plan.machine import Engine, Layout, Load, Machine
from headway.plan.quantized import NVFP4
from headway.plan.shape import ModelShape

Part = Literal["weights", "kv", "compute", "network", "latency", "rows", "prompts", "launch"]
Family = Literal["memory", "kv", "latency", "prompts", "launch", "none"]

_MEMORY_SHARE = 0.95  # of a chip's memory, for weights and KV cache
_US = 1e-6
_NARROW = 512  # columns of an expert on one chip, at which narrowness costs as much again


@dataclass(frozen=True, slots=True)
class Term:
    """part: what it is called where a limit is named. family: which offsets of an engine or generation scale it.
    prior, spread: what the coefficient is expected to be before any measurement, and by what factor it may differ (log).
    """

    name: str
    part: Part
    family: Family
    prior: float
    spread: float


TERMS: tuple[Term, ...] = (
    Term("dense weights", "weights", "memory", 1.12, 0.06),
    Term("experts touched", "weights", "memory", 1.3, 0.15),
    Term("kv read", "kv", "kv", 1.3, 0.2),
    Term("arithmetic, 16 bits", "compute", "none", 1.4, 0.3),
    Term("arithmetic, 8 bits", "compute", "none", 0.9, 0.3),
    Term("arithmetic, 4 bits", "compute", "none", 0.7, 0.4),
    Term("arithmetic, 4-bit weights in 16", "compute", "none", 1.5, 0.5),
    Term("attention arithmetic", "compute", "none", 1.0, 0.7),
    Term("layer", "latency", "latency", 45, 0.3),
    Term("layer, 4-bit activations", "latency", "latency", 10, 0.7),
    Term("layer, latent attention", "latency", "latency", 30, 0.5),
    Term("layer, sparse attention", "latency", "latency", 60, 0.5),
    Term("layer, linear attention", "latency", "latency", 40, 0.5),
    Term("layer, experts", "latency", "latency", 25, 0.5),
    Term("layer, experts in 8 bits", "latency", "latency", 20, 0.7),
    Term("layer, 4-bit experts in 16", "latency", "latency", 10, 1.0),
    Term("layer, share of experts", "latency", "latency", 10, 1.0),
    Term("all-reduce", "network", "latency", 3, 1.0),
    Term("all-reduce over 8", "network", "latency", 5, 1.0),
    Term("all-to-all", "network", "latency", 10, 1.0),
    Term("all-reduce bytes", "network", "latency", 1.0, 0.5),
    Term("all-to-all bytes", "network", "latency", 1.0, 0.7),
    Term("row", "rows", "latency", 10, 0.7),
    Term("row and layer", "rows", "latency", 0.05, 1.0),
    Term("step", "latency", "latency", 300, 0.7),
    Term("prompt, 16 bits", "prompts", "prompts", 1.5, 0.2),
    Term("prompt, 8 bits", "prompts", "prompts", 1.0, 0.3),
    Term("prompt, 4 bits", "prompts", "prompts", 0.7, 0.4),
    Term("prompt, experts in 16 bits", "prompts", "prompts", 2.5, 0.4),
    Term("prompt, experts in 8 bits", "prompts", "prompts", 2.0, 0.4),
    Term("prompt, experts in 4 bits", "prompts", "prompts", 1.5, 0.5),
    Term("prompt, 4-bit experts in 16", "prompts", "prompts", 3.0, 0.4),
    Term("prompt, narrow experts", "prompts", "prompts", 0.7, 0.5),
    Term("prompt attention", "prompts", "prompts", 2.0, 0.5),
    Term("prompt all-reduce", "prompts", "prompts", 1.0, 0.4),
    Term("launch of a layer", "launch", "launch", 200, 0.12),
    Term("launch of a layer of experts", "launch", "launch", 120, 0.12),
)  # fmt: skip
INDEX = {term.name: place for place, term in enumerate(TERMS)}


@dataclass(frozen=True, slots=True)
class Situation:
    """The terms of one load. values: one for each of TERMS. rows: requests that decode at once (fewer than asked for if their
    KV cache doesn't fit). mixed: share of steps with a prompt in them, which run without CUDA graphs. prompts: prompts that
    come into each step; met: share of their time that a decoding row sees."""

    values: tuple[float, ...]
    rows: float
    mixed: float
    prompts: float
    met: float


def kv_room(shape: ModelShape, machine: Machine, layout: Layout) -> float:
    """Bytes left for the KV cache on all chips together; below 0: so many are missing to hold the weights."""
    return machine.memory * _MEMORY_SHARE * layout.chips - shape.weight_bytes


def rows_that_fit(shape: ModelShape, machine: Machine, layout: Layout, tokens: float) -> float:
    """How many requests of so many tokens have room."""
    return kv_room(shape, machine, layout) / max(1.0, shape.kv_bytes_of(tokens) * kv_copies(shape, layout))


def kv_copies(shape: ModelShape, layout: Layout) -> float:
    """How often a KV cache is kept: a latent (MLA) whole by each chip of a tensor-parallel group; heads by several chips where
    there are more chips than heads."""
    return layout.tp if shape.mla is not None else max(1.0, layout.tp / shape.kv_heads)


def situation(shape: ModelShape, machine: Machine, layout: Layout, load: Load, engine: Engine) -> Situation:
    """What one load asks of the chips in each step."""
    rows = max(1.0, min(load.concurrency, rows_that_fit(shape, machine, layout, load.isl + load.osl)))
    prompts = 0.0 if layout.remote_prefill else rows / load.osl
    mixed = max(min(1.0, prompts), float(engine.eager))
    touched = _share_touched(shape, rows * (1 + engine.drafts), prompts, load.isl)
    values = [0.0] * len(TERMS)
    for name, value in {
        **_reads(shape, machine, layout, load, rows, touched),
        **_arithmetic(shape, machine, layout, load, rows * (1 + engine.drafts)),
        **_latencies(shape, machine, layout, rows, touched),
        **_network(shape, machine, layout, rows * (1 + engine.drafts)),
        **_prompts(shape, machine, layout, load, prompts),
        "launch of a layer": shape.layers * _US,
        "launch of a layer of experts": (shape.experts.layers if shape.experts else 0) * _US,
    }.items():
        values[INDEX[name]] = value
    met = 0.5 if engine.prompts_first else 1.0
    return Situation(tuple(values), rows, mixed, prompts, met)


def _share_touched(shape: ModelShape, tokens: float, prompts: float, isl: float) -> float:
    """Mean share of a layer's experts that a step reads; steps with a prompt in them read more."""
    if shape.experts is None:
        return 0.0
    share = min(1.0, prompts)
    without = shape.experts_touched(tokens) / shape.experts.total
    with_prompt = shape.experts_touched(tokens + isl * max(1.0, prompts)) / shape.experts.total
    return (1 - share) * without + share * with_prompt


def _reads(shape: ModelShape, machine: Machine, layout: Layout, load: Load, rows: float, touched: float) -> dict[str, float]:
    bits, chips = shape.bits, layout.chips
    attention = shape.attention_weights * bits.attention / 8 / layout.tp
    mlp = shape.mlp_weights * bits.mlp / 8 / (layout.tp if layout.dp == 1 else chips)
    head = shape.head_weights * bits.head / 8 / chips
    shards = 1 if shape.mla is not None else min(layout.tp, shape.kv_heads)
    kv = rows / layout.dp * shape.kv_read_of(load.isl + load.osl / 2) / shards
    return {
        "dense weights": (attention + mlp + head) / machine.bandwidth,
        "experts touched": shape.expert_bytes / chips * touched / machine.bandwidth,
        "kv read": kv / machine.bandwidth,
    }


def _arithmetic(shape: ModelShape, machine: Machine, layout: Layout, load: Load, tokens: float) -> dict[str, float]:
    context = load.isl + load.osl / 2
    if shape.mla is not None and shape.mla.index_topk:
        context = min(context, shape.mla.index_topk)
    dense, routed = _weights_used(shape)
    dense_kind, routed_kind = _kind(shape.bits.attention, shape, machine), _kind(shape.bits.experts, shape, machine)
    seconds = dict.fromkeys(("16 bits", "8 bits", "4 bits", "4-bit weights in 16"), 0.0)
    seconds[dense_kind if dense_kind in {"16 bits", "8 bits", "4 bits"} else "16 bits"] += dense
    seconds[routed_kind] += routed
    rate = 2 * tokens / layout.chips / machine.peak
    attention = tokens / layout.dp * shape.attention_flops * context / layout.tp / machine.peak
    return {f"arithmetic, {kind}": weights * rate for kind, weights in seconds.items()} | {"attention arithmetic": attention}


def _weights_used(shape: ModelShape) -> tuple[int, int]:
    """Weights a token is multiplied with: dense ones, and those of routed experts (routers with them)."""
    dense = shape.attention_weights + shape.mlp_weights + shape.head_weights
    return dense, shape.active_weights - dense


def _kind(bits: float, shape: ModelShape, machine: Machine) -> str:
    """How products with weights of so many bits are computed."""
    if bits >= 12:
        return "16 bits"
    if bits > 6:
        return "8 bits"
    return "4 bits" if machine.fp4 and not shape.bits.integer else "4-bit weights in 16"


def _latencies(shape: ModelShape, machine: Machine, layout: Layout, rows: float, touched: float) -> dict[str, float]:
    layers, rank_rows = shape.layers, rows / layout.dp
    mixture = shape.experts.layers if shape.experts else 0
    kind = _kind(shape.bits.experts, shape, machine) if mixture else ""
    latent = layers * (0.5 + shape.heads / 256) if shape.mla is not None else 0.0
    sparse = layers if shape.mla is not None and shape.mla.index_topk else 0
    narrow = NVFP4 in (shape.bits.mlp, shape.bits.experts) and not shape.bits.integer
    counts = {
        "layer": layers,
        "layer, 4-bit activations": layers * narrow,
        "layer, latent attention": latent,
        "layer, sparse attention": sparse,
        "layer, linear attention": shape.linear.layers if shape.linear else 0,
        "layer, experts": mixture,
        "layer, experts in 8 bits": mixture * (kind == "8 bits"),
        "layer, 4-bit experts in 16": mixture * (kind == "4-bit weights in 16"),
        "layer, share of experts": mixture * touched,
        "row": rank_rows,
        "row and layer": rank_rows * layers,
        "step": 1.0,
    }
    return {name: count * _US for name, count in counts.items()}


def _network(shape: ModelShape, machine: Machine, layout: Layout, tokens: float) -> dict[str, float]:
    """All-reduce latencies and bytes. Small messages go to every peer at once, so bytes grow with the number of peers."""
    layers, many = shape.layers, layout.tp > 1
    mixture = shape.experts.layers if shape.experts else 0
    sent = _bytes_reduced(shape)
    exchanged = tokens * sent if layout.ep > 1 or layout.dp > 1 else 0.0
    return {
        "all-reduce": layers * many * _US,
        "all-reduce over 8": layers * (layout.tp >= 8) * _US,
        "all-to-all": mixture * (layout.dp > 1) * _US,
        "all-reduce bytes": tokens / layout.dp * sent * (layout.tp - 1) / machine.link,
        "all-to-all bytes": exchanged / machine.link,
    }


def _bytes_reduced(shape: ModelShape) -> float:
    """Bytes of activations a token hands over in all layers: twice a layer, 16 bits."""
    return shape.hidden * 2.0 * 2.0 * shape.layers


def _prompts(shape: ModelShape, machine: Machine, layout: Layout, load: Load, prompts: float) -> dict[str, float]:
    tokens = prompts * load.isl
    dense, routed = _weights_used(shape)
    rate = 2 * tokens / layout.chips / machine.peak
    dense_kind, routed_kind = _kind(shape.bits.attention, shape, machine), _kind(shape.bits.experts, shape, machine)
    found = {f"prompt, {dense_kind if dense_kind != '4-bit weights in 16' else '16 bits'}": (dense - shape.head_weights) * rate}
    if shape.experts is not None:
        name = "prompt, 4-bit experts in 16" if routed_kind == "4-bit weights in 16" else f"prompt, experts in {routed_kind}"
        found[name] = routed * rate
        found["prompt, narrow experts"] = routed * rate * _NARROW / (shape.experts.width / max(1, layout.chips // layout.ep))
    looked_at = min(load.isl, shape.mla.index_topk) if shape.mla is not None and shape.mla.index_topk else load.isl
    head = shape.head_dim
    if shape.mla is not None:
        head = (shape.mla.nope_dim + shape.mla.rope_dim + shape.mla.value_dim) // 2
    full = shape.attention_layers - shape.window_layers
    found["prompt attention"] = tokens * looked_at / 2 * 4 * full * shape.heads * head / layout.chips / machine.peak
    ring = 2 * (layout.tp - 1) / layout.tp
    found["prompt all-reduce"] = tokens * _bytes_reduced(shape) * ring / machine.link
    return found
