"""The ladder: steps of rising size, timed at start-up, from which the cost model is fitted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.engines.base import BatchRow, Engine, start_padded
from headway.runtime.kept import KeptTimes, path_of, read, write
from headway.scheduler.cost import KNOTS, CostModel, Observation

CONTEXT = 128
"""Positions before the measured token, on most rungs."""
LONG_CONTEXT = 1024
SAMPLED_UP_TO = 64
"""Rungs up to here look like decoding (every token sampled), above like a prompt's chunk (one sampled)."""
ROUNDS = 3
CHANGES = 14
"""Changes of size that are timed."""
CHECKED = (4, 8, 32)
"""Rungs that are measured at every start."""
AGREEMENT = (0.6, 1.6)
"""A cached ladder is used if these differ from it by a factor in this range."""

Timer = Callable[[], float]
Rung = tuple[int, int, int]
"""(tokens, positions before each, sampled)"""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """costs: to start with. kept: what is in the cache now. about: which times these are, for people."""

    costs: CostModel
    kept: KeptTimes
    about: str


def step_times(
    engine: Engine,
    max_step_tokens: int,
    cache: Path | None = None,
    *,
    identity: str = "",
    fresh: bool = False,
    clock: Timer = time.perf_counter,
) -> StepTimes:
    """The step times of this engine on this machine. From `cache` if the ladder there still agrees with a few rungs measured
    now: as they were learnt while serving, if they were. Else, and if `fresh`, from a full ladder (some seconds).

    Use it before anything else runs on the engine: it writes over KV blocks. identity: what the cached ladder depends on.
    """
    path = None if cache is None else path_of(cache, identity)
    known = None if path is None else read(path)
    if known is not None and known.measured.grid != engine.info.grid:
        known = None
    if known is not None and not fresh:
        speed = _seconds_over(engine, known.measured, clock)
        if AGREEMENT[0] <= speed <= AGREEMENT[1]:
            return _from_cache(known, speed, min(CONTEXT, _room(engine)))
        known = None  # what was learnt was learnt on another machine
    ladder = _climb(engine, _rungs(engine, max_step_tokens), clock)
    measured = CostModel.fit(ladder, per_change=_change(engine, clock), grid=engine.info.grid)
    learnt = None
    if known is not None and AGREEMENT[0] <= _ratio(measured, known.measured, min(CONTEXT, _room(engine))) <= AGREEMENT[1]:
        learnt = known.learnt
    kept = KeptTimes(measured, learnt, identity, engine.info.num_blocks, engine.info.block_size)
    if path is not None:
        write(path, kept)
    return StepTimes(measured, kept, "measured now")


def _from_cache(known: KeptTimes, speed: float, context: int) -> StepTimes:
    """speed: seconds of steps now over those of the ladder. Learnt times are those of a loaded machine already, so they are
    not scaled, unless the quiet machine of this moment is slower than they are."""
    if known.learnt is None:
        known.measured.drift = speed
        return StepTimes(known.measured, known, "measured at an earlier start")
    loaded = 1.0 / _ratio(known.measured, known.learnt, context)
    known.learnt.drift = max(1.0, speed / loaded)
    return StepTimes(known.learnt, known, f"learnt while serving, {loaded:.2f} times those measured on the quiet machine")


def _ratio(one: CostModel, other: CostModel, context: int) -> float:
    """Of the seconds that two models predict for small steps."""
    return statistics.median(one.seconds(n, n * (context + 1), n) / other.seconds(n, n * (context + 1), n) for n in CHECKED)


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


def _seconds_over(engine: Engine, costs: CostModel, clock: Timer) -> float:
    """Seconds of a few rungs now over what `costs` predict."""
    before = min(CONTEXT, _room(engine))
    ratios = []
    for tokens in CHECKED:
        seconds = statistics.median(_measure(engine, (tokens, before, tokens), clock) for _ in range(ROUNDS))
        ratios.append(seconds / costs.seconds(tokens, tokens * (before + 1), tokens))
    return statistics.median(ratios)
