"""The embedded engine: OpenVINO on the CPU, one paged step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import psutil
from numpy.typing import NDArray

from headway.config import EngineSettings
from headway.engines.base import BatchRow, EngineInfo
from headway.engines.draft_head import DraftHead
from headway.engines.drafter import Drafter
from headway.engines.graph import SAMPLED, ends, is_cache, matrices, paged, vocab_size
from headway.engines.smooth import GROUP
from headway.errors import ModelError, UsageError
from headway.scheduler.sizes import Grid

Ints = NDArray[np.int32]

GRID = Grid(((64, 4), (4096, 16)))
"""Four tokens take hardly longer than one (10.9 and 10.2 ms), and a row that decodes alone mostly has drafts to fill them."""

NUM_DRAFTS = 3
"""Guesses of the draft head at a time: with the row's own token they fill the smallest step of the grid beyond a single one."""


class OpenVINOEngine:
    """Every token is handed to the attention as a sequence of its own, with its row's block table as far as the token sees.

    That is what makes a token's logits the same to the last bit whether its row is prefilled whole, in chunks, decoded,
    verified or recomputed, alone or beside others: the attention kernel for one query is the only one used, and the matrix
    products treat every token alike. (The kernel for many queries rounds differently.) The exception is a step with fewer
    sequences than threads, where the kernel splits the context among threads: empty sequences are added.
    """

    def __init__(
        self,
        folder: Path,
        settings: EngineSettings,
        context_length: int,
        max_context_tokens: int,
        head: Path | None = None,
        taps: Sequence[int] = (),
    ) -> None:
        """folder: an OpenVINO IR. head: a draft head for it. taps: without a head, the layers that features() reads.
        context_length: the model's own limit in tokens. max_context_tokens: what all seats together could fill, the most that
        an automatically sized pool holds. Raises ModelError for a graph that can't be served, UsageError if the memory asked
        for isn't there."""
        try:
            self._load(folder, settings, context_length, max_context_tokens, head, taps)
        except (RuntimeError, OSError, MemoryError) as error:
            reason = (str(error).strip().splitlines() or ["out of memory"])[-1]
            raise ModelError(f"{folder} can't be loaded: {reason}") from None

    def _load(
        self,
        folder: Path,
        settings: EngineSettings,
        context_length: int,
        max_context_tokens: int,
        head_path: Path | None,
        taps: Sequence[int],
    ) -> None:
        core = ov.Core()
        model = core.read_model(folder / "openvino_model.xml")
        self._drafter = None
        if head_path is not None:
            head = DraftHead.load(head_path)
            model_ends = ends(model)
            head.check_fits(head_path, model_ends.output.shape[1], len(model_ends.output))
            self._drafter = Drafter(head, model_ends, NUM_DRAFTS, settings.threads)
            taps = head.layers
        model = paged(model, taps)
        self._num_taps = len(taps)
        weight_bytes = (folder / "openvino_model.bin").stat().st_size
        compiled = core.compile_model(model, "CPU", _properties(settings, model))
        self._threads = int(compiled.get_property("INFERENCE_NUM_THREADS"))
        self._request = compiled.create_infer_request()
        caches = {next(iter(i.get_names())): i for i in compiled.inputs if is_cache(next(iter(i.get_names())))}
        shapes = {name: [d.get_length() if d.is_static else 0 for d in i.get_partial_shape()] for name, i in caches.items()}
        block_bytes = sum(int(np.prod(shapes[name][1:])) * i.get_element_type().size for name, i in caches.items())
        # [blocks, heads, tokens of a block, head size], the last with room for scales if the cache is quantized.
        block_size = min(shape[2] for shape in shapes.values())
        num_blocks = _num_blocks(settings.kv_memory, block_bytes, block_size, context_length, max_context_tokens)
        self._caches: list[NDArray[Any]] = []
        for name, port in caches.items():
            # One more than the pool has: the one that padding writes into.
            tensor = ov.Tensor(port.get_element_type(), ov.Shape([num_blocks + 1, *shapes[name][1:]]))
            self._request.set_tensor(name, tensor)
            self._caches.append(tensor.data)  # a view of the tensor's memory (of bf16 as if it were f16: for copying the same)
        self._block_size = block_size
        self._num_sampled = 0
        self.info = EngineInfo(
            vocab_size=vocab_size(model),
            context_length=min(context_length, num_blocks * block_size),
            block_size=block_size,
            num_blocks=num_blocks,
            kv_bytes_per_token=block_bytes // block_size,
            weight_bytes=weight_bytes,
            exact=True,  # what is_exact() in runtime/ladder.py checks on the machine at hand
            description=f"OpenVINO {ov.__version__.split('-')[0]}, {settings.precision}, KV {settings.kv_precision}, "
            f"weights {settings.weights}, profile {settings.profile}, {self._threads} threads",
            num_drafts=NUM_DRAFTS if self._drafter is not None else 0,
            grid=GRID,
            matrices=matrices(model),
        )
        self._compiled = compiled

    def copy(self, source: int, destination: int, num_tokens: int) -> None:
        for cache in self._caches:
            cache[destination, :, :num_tokens] = cache[source, :, :num_tokens]

    def start(self, rows: Sequence[BatchRow], size: int) -> None:
        tensors = _step_inputs(rows, self._block_size, self._threads, size, self.info.num_blocks)
        self._num_sampled = sum(row.num_sampled for row in rows)
        for name, values in tensors.items():
            self._request.set_tensor(name, ov.Tensor(values))
        self._request.start_async()

    def wait(self) -> NDArray[np.float32]:
        self._request.wait()
        logits: NDArray[np.float32] = self._request.get_output_tensor(0).data
        return logits.reshape(-1, logits.shape[-1])[: self._num_sampled]

    def features(self, places: Sequence[int]) -> NDArray[np.float32]:
        if not self._num_taps:
            raise RuntimeError("this engine was opened without layers to tap")
        layers = [self._request.get_output_tensor(1 + i).data for i in range(self._num_taps)]
        return np.concatenate([layer.reshape(-1, layer.shape[-1])[list(places)] for layer in layers], axis=1)

    def draft(self, places: Sequence[int], tokens: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if self._drafter is None:
            raise RuntimeError("this engine has no draft head")
        return self._drafter.draft(self.features(places), tokens)

    def close(self) -> None:
        self._caches.clear()  # the views keep the memory
        del self._request, self._compiled


def _properties(settings: EngineSettings, model: ov.Model) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": settings.precision,
        "KV_CACHE_PRECISION": settings.kv_precision if settings.precision == "f32" else _bf16_cache(settings),
        "NUM_STREAMS": 1,
    }
    if settings.kv_precision == "u8":
        properties["KEY_CACHE_QUANT_MODE"] = "BY_TOKEN"
    if model.has_rt_info(GROUP):
        properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = str(model.get_rt_info(GROUP).astype(str))
    elif settings.profile == "throughput":
        raise UsageError('this model was not prepared for the profile "throughput": set engine.profile = "exact"')
    if settings.threads:
        properties["INFERENCE_NUM_THREADS"] = settings.threads
    return properties


def _bf16_cache(settings: EngineSettings) -> str:
    """bf16 arithmetic reads a 16-bit cache as bf16 only."""
    return "bf16" if settings.kv_precision == "f16" else settings.kv_precision


def _num_blocks(wanted: int | None, block_bytes: int, block_size: int, context_length: int, max_context_tokens: int) -> int:
    free = psutil.virtual_memory().available
    if wanted is None:
        enough = -(-max_context_tokens // block_size) * block_bytes
        wanted = min(free // 4, enough)
    elif wanted > free:
        raise UsageError(
            f"{wanted / 2**20:,.0f} MiB for the KV cache are more than the {free / 2**20:,.0f} MiB of free memory; "
            f"give a smaller --kv-memory"
        )
    least = min(256, context_length)
    num_blocks = wanted // block_bytes
    if num_blocks * block_size < least:
        raise UsageError(
            f"{wanted / 2**20:,.1f} MiB for the KV cache hold {num_blocks * block_size} tokens; at least {least} are needed "
            f"({-(-least // block_size) * block_bytes / 2**20:,.1f} MiB): give a larger --kv-memory"
        )
    return int(num_blocks)


def _step_inputs(
    rows: Sequence[BatchRow], block_size: int, min_sequences: int, size: int, scratch: int
) -> dict[str, NDArray[Any]]:
    """The tensors of one step: every token a sequence of length one. Tokens that fill the step up to `size` are sequences too,
    which write into the block `scratch`."""
    ids: list[int] = []
    past: list[int] = []
    counts: list[int] = []
    tables: list[Ints] = []
    sampled: list[int] = []
    singles: list[int] = []  # the tables of rows of one token, which most are, gathered up to be made one array
    for row in rows:
        n = len(row.tokens)
        if n == 1:
            count = row.start // block_size + 1
            counts.append(count)
            past.append(row.start)
            singles += row.blocks[:count]
        else:
            if singles:
                tables.append(np.array(singles, np.int32))
                singles = []
            positions = np.arange(row.start, row.start + n, dtype=np.int32)
            need = positions // block_size + 1
            _append_tables(tables, np.array(row.blocks, np.int32), need)
            counts += need.tolist()
            past += positions.tolist()
        ids += row.tokens
        sampled += range(len(ids) - row.num_sampled, len(ids))
    tables.append(np.array(singles, np.int32))
    fill = np.zeros(size - len(ids), np.int32)
    empty = np.zeros(max(0, min_sequences - size), np.int32)
    positions = np.array(past + fill.tolist(), np.int32)
    return {
        "input_ids": np.array(ids + fill.tolist(), np.int64),
        "position_ids": positions.astype(np.int64),
        "past_lens": np.concatenate([positions, empty]),
        "subsequence_begins": _begins(np.concatenate([np.ones(size, np.int32), empty])),
        "block_indices": np.concatenate([*tables, fill + scratch]),
        "block_indices_begins": _begins(np.array(counts + [1] * len(fill) + [0] * len(empty), np.int32)),
        "max_context_len": np.array(int(positions.max()) + 1, np.int32),
        # The graph's last product wants one row at least; wait() drops what nobody asked for.
        SAMPLED: np.array(sampled or [0], np.int64),
    }


def _append_tables(tables: list[Ints], blocks: Ints, need: Ints) -> None:
    """A copy of the first `need[i]` blocks for each token i; tokens in the same block share one tiling."""
    first, last = int(need[0]), int(need[-1])
    if first == last:
        tables.append(np.tile(blocks[:first], len(need)))
        return
    for blocks_seen, times in zip(*np.unique(need, return_counts=True), strict=True):
        tables.append(np.tile(blocks[:blocks_seen], times))


def _begins(lengths: Ints) -> Ints:
    begins = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=begins[1:])
    return begins
