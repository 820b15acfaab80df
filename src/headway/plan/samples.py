"""Measured points to fit to: rows of a CSV file in the form of `silicon_sample.csv` of ai-dynamo/aiconfigurator (Apache-2.0).

Columns: model, gpu, engine, engine_version, precision, gemm_quant, isl, osl, concurrency, batch_size, tp, dp, moe_tp, moe_ep,
ttft_ms, tpot_ms. Labels are read as the runs' public configuration (SemiAnalysisAI/InferenceX) says they were meant: see
`_layout` and `_drafts`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headway.errors import UsageError
from headway.plan.known import known_shape
from headway.plan.machine import Engine, Layout, Load, Machine
from headway.plan.measured import machine_of
from headway.plan.quantized import named_bits
from headway.plan.shape import ModelShape

Row = dict[str, str]

_PRECISION = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4", "int4_wo": "int4", "": "bf16"}
_DATED = {
    ("trtllm", ""), ("trtllm", "1.0.0rc3"), ("trtllm", "1.1.0rc2.post2"), ("trtllm", "gpt-oss-dev"),
    ("vllm", ""), ("vllm", "0.11.2"), ("sglang", ""),
}  # fmt: skip
_WITHOUT_GRAPHS = {("vllm", "0.12.0")}
_OTHER_HARNESS = {"1.2.0rc6.post1", "1.3.0rc1", "1.3.0rc5", "0.5.8.post1", "0.12.0"}
_NODE = 8  # chips; one model over more of them was served with prompts computed elsewhere


@dataclass(frozen=True, slots=True)
class Sample:
    """A measured point. group: model, chip and engine, which are held out together. trained: whether a fit may use it (not the
    few of other harnesses or of disaggregated serving, which are predicted all the same)."""

    group: tuple[str, str, str]
    series: tuple[str, ...]
    shape: ModelShape
    machine: Machine
    layout: Layout
    load: Load
    engine: Engine
    ttft: float
    tpot: float
    trained: bool


def read_samples(path: Path) -> list[Sample]:
    """All rows of the file. Raises UsageError if it isn't there or has other columns."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [sample_of(row) for row in csv.DictReader(line for line in file if not line.startswith("#"))]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give the measured points' CSV file") from None
    except KeyError as error:
        raise UsageError(f"{path}: not the form of silicon_sample.csv, {error} is missing") from None


def sample_of(row: Row) -> Sample:
    """One row, its labels read. Raises KeyError for a missing column."""
    machine, base = machine_of(row["gpu"]), known_shape(row["model"])
    precision = _PRECISION[row["gemm_quant"]]
    mxfp4 = base.name.startswith("gpt-oss")
    shape = base.with_bits(named_bits(precision, has_experts=base.experts is not None, mxfp4_experts=mxfp4))
    isl, osl, version = float(row["isl"]), float(row["osl"]), (row["engine"], row["engine_version"])
    layout = _layout(row, shape)
    concurrency = float(row["concurrency"] or 0) or float(row["batch_size"]) * layout.dp
    if layout.dp == 1 and row["batch_size"]:
        concurrency = min(concurrency, float(row["batch_size"]))
    engine = Engine(
        name=row["engine"],
        dated=version in _DATED,
        eager=version in _WITHOUT_GRAPHS,
        prompts_first=row["engine"] == "sglang" and osl <= 512 and shape.experts is None,
        drafts=_drafts(row),
    )
    odd = layout.remote_prefill or row["gpu"] == "gb200" or row["engine_version"] in _OTHER_HARNESS
    odd = odd or (row["gpu"] == "h100_sxm" and concurrency >= 512)
    return Sample(
        group=(row["model"], row["gpu"], row["engine"]),
        series=(*(row[key] for key in ("model", "gpu", "engine", "precision", "isl", "osl")), str(engine.drafts)),
        shape=shape,
        machine=machine,
        layout=layout,
        load=Load(concurrency, isl, osl),
        engine=engine,
        ttft=float(row["ttft_ms"]) / 1e3,
        tpot=float(row["tpot_ms"]) / 1e3,
        trained=not odd,
    )


def contradictory(samples: Iterable[Sample]) -> set[int]:
    """Places of points that contradict their own series: less time a token than at a smaller concurrency, by half and more.
    Of each such pair the point with more contradictions is named, until none is left."""
    samples = list(samples)
    series: dict[tuple[object, ...], list[int]] = {}
    for place, sample in enumerate(samples):
        series.setdefault((sample.series, sample.layout.chips, sample.layout.dp), []).append(place)
    found: set[int] = set()
    for places in series.values():
        while True:
            left = [place for place in places if place not in found]
            counts = {place: _conflicts(samples, place, left) for place in left}
            worst = max(counts, key=lambda place: counts[place], default=None)
            if worst is None or not counts[worst]:
                break
            found.add(worst)
    return found


def _conflicts(samples: list[Sample], place: int, others: list[int]) -> int:
    here = samples[place]
    return sum(
        (one.load.concurrency - here.load.concurrency) * (one.tpot - here.tpot) < 0
        and max(one.tpot, here.tpot) > 1.5 * min(one.tpot, here.tpot)
        for one in (samples[other] for other in others)
    )


def _layout(row: Row, shape: ModelShape) -> Layout:
    """The split meant by a row's labels.

    The file multiplies where InferenceX names the same chips twice: with tp 8 and ep 8 on 8 chips a row says moe_tp 8, moe_ep 8
    and tp (or dp) 64; with attention in data parallel over tp chips it may say dp = tp and moe_ep = tp x tp.
    """
    tp, dp = int(row["tp"]), int(row["dp"] or 1) or 1
    moe_tp, ep = int(row["moe_tp"] or 1) or 1, int(row["moe_ep"] or 1) or 1
    if shape.experts is None:
        return Layout(tp)
    if tp > _NODE and moe_tp == tp:
        return Layout(1, tp, ep, remote_prefill=True)
    if row["dp"] and moe_tp == ep > 1 and tp * dp == moe_tp * ep:
        return Layout(1, moe_tp, ep) if dp > 1 else Layout(moe_tp, 1, ep)
    if dp > 1 and tp > 1 and ep == tp * dp:
        return Layout(1, tp, tp)
    if dp > 1:
        return Layout(tp, dp, ep)
    batch, concurrency = float(row["batch_size"] or 0), float(row["concurrency"] or 0)
    if not row["dp"] and moe_tp * ep == tp and batch and concurrency > batch:
        groups = round(concurrency / batch)
        return Layout(max(1, tp // groups), groups if tp >= groups else tp, ep)
    if not row["dp"] and moe_tp * ep > tp:
        return Layout(tp, moe_tp * ep // tp, ep)
    return Layout(tp, 1, ep)


def _drafts(row: Row) -> int:
    """Drafts in each step. The file doesn't say; InferenceX's public configurations and change log do, by image version:
    TensorRT-LLM 1.2.0rc6.post3 is what DeepSeek R1 "trt-mtp" runs used, 1.1.0rc2.post2 both; of Qwen3.5 in fp8 on B200 the runs
    at tp 4 without ep. Three drafts, one with attention in data parallel.
    """
    if row["model"].endswith("Qwen3.5-397B-A17B"):
        return 3 if (row["gpu"], row["engine_version"], row["tp"], row["moe_ep"]) == ("b200_sxm", "0.5.9", "4", "1") else 0
    if not row["model"].endswith("DeepSeek-R1") or row["engine"] != "trtllm":
        return 0
    if row["engine_version"] not in {"1.2.0rc6.post3", "1.1.0rc2.post2"} or _is_plain(row):
        return 0
    return 1 if int(row["dp"] or 1) > 1 else 3


# (isl, osl, tp): the largest concurrency of "dsr1-fp4-b200-trt-mtp" without ep in its search space of 1.1.0rc2.post2
_LARGEST = {
    ("1024", "1024", "4"): 8, ("1024", "1024", "8"): 8, ("1024", "8192", "4"): 16,
    ("1024", "8192", "8"): 4, ("8192", "1024", "4"): 4, ("8192", "1024", "8"): 16,
}  # fmt: skip


def _is_plain(row: Row) -> bool:
    """A run of 1.1.0rc2.post2 that had no drafts: larger than any of "trt-mtp" with its split, or at the time of plain runs."""
    if row["engine_version"] != "1.1.0rc2.post2":
        return False
    if (row["gpu"], row["precision"], row["moe_ep"]) == ("b200_sxm", "fp4", "1"):
        return int(row["concurrency"]) > _LARGEST[row["isl"], row["osl"], row["tp"]]
    key = (row["gpu"], row["isl"], row["osl"], row["concurrency"], row["dp"], row["tp"])
    return key == ("h200_sxm", "1024", "8192", "64", "1", "8") and float(row["tpot_ms"]) > 30
