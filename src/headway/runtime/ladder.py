"""The ladder: steps of rising size, timed at start-up, from which the cost model is fitted."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.engines.base import BatchRow, Engine, start_padded
from headway.scheduler.cost import KNOTS, CostModel, Observation

CONTEXT = 128
"""Positions before the measured token, on most rungs."""
LONG_CONTEXT = 1024
SAMPLED_UP_TO = 64
"""Rungs up to here look like decoding (every token sampled), above like a prompt's chunk (one sampled)."""
ROUNDS = 3
CHANGES = 14
"""Changes of size that are timed."""
AGREEMENT = (0.6, 1.6)
"""A cached ladder is used if a few fresh rungs differ from it by a factor in this range; it is then scaled by it."""

Timer = Callable[[], float]
Rung = tuple[int, int, int]
"""(tokens, positions before each, sampled)"""


def cost_model(
    engine: Engine,
    max_step_tokens: int,
    cache: Path | None = None,
    *,
    identity: str = "",
    fresh: bool = False,
    clock: Timer = time.perf_counter,
) -> CostModel:
    """The cost model of this engine on this machine: from `cache` if it still agrees, else from a full ladder (some seconds).

    Use it before anything else runs on the engine: it writes over KV blocks. identity: what the cached ladder depends on.
    """
    path = None if cache is None else cache / f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"
    if path is not None and not fresh:
        known = _read(path, engine)
        if known is not None and _still_agrees(engine, known, clock):
            return known
    ladder = _climb(engine, _rungs(engine, max_step_tokens), clock)
    costs = CostModel.fit(ladder, per_change=_change(engine, clock), grid=engine.info.grid)
    if path is not None:
        _write(path, costs, engine, identity)
    return costs


@dataclass(frozen=True, slots=True)
class KnownLadder:
    """A cached ladder, and what it was measured on: the identity given then, and the KV pool of that engine."""

    costs: CostModel
    identity: str
    num_blocks: int
    block_size: int


def newest_ladder(cache: Path, sha256: str) -> KnownLadder | None:
    """The ladder that was last measured for the model with this digest; None if there is none."""
    newest: tuple[float, KnownLadder] | None = None
    for path in cache.glob("*.json"):
        known = _read_known(path)
        if known is not None and sha256 in known.identity.split():
            measured = path.stat().st_mtime
            if newest is None or measured > newest[0]:
                newest = measured, known
    return None if newest is None else newest[1]


def is_exact(engine: Engine) -> bool:
    """Whether a token's logits are the same to the last bit alone, in a prompt, beside others and after half a block that was
    copied: computed, not assumed. Writes over KV blocks, like the ladder."""
    tokens = [(37 * i + 11) % engine.info.vocab_size for i in range(2 * engine.info.block_size + 3)]
    blocks_each = len(tokens) // engine.info.block_size + 1
    if engine.info.num_blocks < 3 * blocks_each:
        return False
    blocks = [list(range(n * blocks_each, (n + 1) * blocks_each)) for n in range(3)]
    whole = _run(engine, [BatchRow(tokens, 0, blocks[0], 1)])
    for position, token in enumerate(tokens):
        alone = _run(engine, [BatchRow([token], position, blocks[1], 1)])
    others = [BatchRow([position + 5], position, blocks[2], 0) for position in range(min(20, len(tokens)))]
    beside = _run(engine, [*others, BatchRow([tokens[-1]], len(tokens) - 1, blocks[1], 1)])
    size, start = engine.info.block_size, engine.info.block_size + engine.info.block_size // 2
    engine.copy(blocks[1][1], blocks[2][1], start - size)
    copied = _run(engine, [BatchRow(tokens[start:], start, [blocks[1][0], *blocks[2][1:]], 1)])
    return whole == alone == beside == copied


def _run(engine: Engine, rows: Sequence[BatchRow]) -> bytes:
    start_padded(engine, rows)
    logits: bytes = engine.wait()[-1].tobytes()
    return logits


def _room(engine: Engine) -> int:
    """Positions that a token may have before it."""
    return min(engine.info.context_length, engine.info.num_blocks * engine.info.block_size) - 1


def _rungs(engine: Engine, max_step_tokens: int) -> list[Rung]:
    room = _room(engine)
    context, long_context = min(CONTEXT, room), min(LONG_CONTEXT, room)
    up = engine.info.grid.up
    sizes = sorted({up(n) for n in KNOTS if up(n) < max_step_tokens} | {max_step_tokens})
    rungs = [(n, context, n if n <= SAMPLED_UP_TO else 1) for n in sizes]
    middle = max(n for n in sizes if n <= SAMPLED_UP_TO)
    rungs.append((middle, context, 1))
    if long_context > context:
        rungs += [(n, long_context, n) for n in (8, 32) if n in sizes and n <= SAMPLED_UP_TO]
    return rungs


def _climb(engine: Engine, rungs: Sequence[Rung], clock: Timer) -> list[Observation]:
    """The median of each rung over ROUNDS rounds: what disturbs the machine for a second then spoils no rung's every time."""
    rounds = [[_measure(engine, rung, clock) for rung in rungs] for _ in range(ROUNDS)]
    return [
        Observation(tokens, tokens * (before + 1), sampled, statistics.median(times))
        for (tokens, before, sampled), times in zip(rungs, zip(*rounds, strict=True), strict=True)
    ]


def _measure(engine: Engine, rung: Rung, clock: Timer) -> float:
    """Seconds of a step, the better of two; one more goes first, since it also sets up the buffers of its size."""
    rows = _rows(engine, rung)
    return min([_timed(engine, rows, clock) for _ in range(3)][1:])


def _timed(engine: Engine, rows: Sequence[BatchRow], clock: Timer) -> float:
    begun = clock()
    start_padded(engine, rows)
    engine.wait()
    return clock() - begun


def _change(engine: Engine, clock: Timer) -> float:
    """Seconds that a step takes longer after one of another size: the median over pairs of steps."""
    up = engine.info.grid.up
    if up(1) == 1:  # an engine to which sizes are all one
        return 0.0
    context = min(CONTEXT, _room(engine))
    rows = [_rows(engine, (tokens, context, tokens)) for tokens in (up(1), up(up(1) + 1))]
    extra = []
    for number in range(CHANGES):
        changed, same = (_timed(engine, rows[number % 2], clock) for _ in range(2))
        extra.append(changed - same)
    return max(0.0, statistics.median(extra[2:]))


def _rows(engine: Engine, rung: Rung) -> list[BatchRow]:
    tokens, before, sampled = rung
    size, num_blocks = engine.info.block_size, engine.info.num_blocks
    table = before // size + 1
    # Each token its own blocks as far as the pool goes: shared ones would be found in the processor's cache.
    return [
        BatchRow([7 + i], before, [(i * table + b) % num_blocks for b in range(table)], int(i < sampled)) for i in range(tokens)
    ]


def _still_agrees(engine: Engine, costs: CostModel, clock: Timer) -> bool:
    before = min(CONTEXT, _room(engine))
    ratios = []
    for tokens in (4, 8, 32):
        seconds = statistics.median(_measure(engine, (tokens, before, tokens), clock) for _ in range(ROUNDS))
        ratios.append(seconds / costs.seconds(tokens, tokens * (before + 1), tokens))
    costs.drift = statistics.median(ratios)
    return AGREEMENT[0] <= costs.drift <= AGREEMENT[1]


def _read(path: Path, engine: Engine) -> CostModel | None:
    """None for a file that is missing, no ladder or one with other sizes of steps: it is then measured again."""
    known = _read_known(path)
    return known.costs if known is not None and known.costs.grid == engine.info.grid else None


def _read_known(path: Path) -> KnownLadder | None:
    try:
        data = json.loads(path.read_text())
        costs = CostModel.from_dict(data)
        return KnownLadder(costs, str(data["identity"]), int(data["num_blocks"]), int(data["block_size"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, costs: CostModel, engine: Engine, identity: str) -> None:
    """Best effort: a cache folder that can't be written costs some seconds at the next start, no more."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        facts = {"identity": identity, "num_blocks": engine.info.num_blocks, "block_size": engine.info.block_size}
        part.write_text(json.dumps(facts | costs.to_dict()))
        part.replace(path)
    except OSError:
        return
