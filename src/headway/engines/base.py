"""What headway asks of an engine: run one step over any mix of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headway.scheduler.sizes import ANY_SIZE, Grid


@dataclass(frozen=True, slots=True)
class Matrices:
    """The matrices of a model, which every step reads whole: not the table of embeddings, of which it takes single rows, unless
    that is the output's matrix too. bytes: as held in memory, scales included. weights: how many numbers; a token takes two
    operations for each."""

    bytes: int
    weights: int


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Fixed facts of a loaded model.

    context_length: tokens a request may hold (prompt + output), already bounded by the KV memory.
    block_size: tokens per KV block; num_blocks: blocks in the pool; kv_bytes_per_token; weight_bytes as held in memory.
    exact: a token's logits do not depend, bit for bit, on what else is in the step.
    num_drafts: tokens that draft() guesses ahead; 0 if it can't.
    grid: the sizes that steps should have.
    matrices: what a step multiplies by; None if the engine can't tell.
    """

    vocab_size: int
    context_length: int
    block_size: int
    num_blocks: int
    kv_bytes_per_token: int
    weight_bytes: int
    exact: bool
    description: str
    num_drafts: int = 0
    grid: Grid = ANY_SIZE
    matrices: Matrices | None = None


@dataclass(slots=True)
class BatchRow:
    """One request's part in a step.

    tokens: ids to compute now; start: position of the first of them; blocks: the row's block table, covering
    [0, start + len(tokens)); num_sampled: of how many of the last tokens logits are wanted (0 for a chunk in mid-prompt).
    """

    tokens: Sequence[int]
    start: int
    blocks: Sequence[int]
    num_sampled: int


class Engine(Protocol):
    """Not thread-safe: one thread owns it."""

    info: EngineInfo

    def copy(self, source: int, destination: int, num_tokens: int) -> None:
        """Put the KV of the first `num_tokens` of block `source` into block `destination` (which may be the same) as well. Only
        between steps; done when it returns."""

    def start(self, rows: Sequence[BatchRow], size: int) -> None:
        """Begin a step of `size` tokens, at least as many as the rows have; the device works while the caller does something
        else."""

    def wait(self) -> NDArray[np.float32]:
        """Finish the step begun last. Logits [sum of num_sampled, vocab_size] in row order, valid until the next start."""

    def features(self, places: Sequence[int]) -> NDArray[np.float32]:
        """What the model knew at some rows of the last logits, after wait() and before the next start(): the residual stream
        after the layers that the engine was opened to tap, one after the other [places, layers * hidden]."""

    def draft(self, places: Sequence[int], tokens: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Guess how rows go on, after wait() and before the next start(). places: of each row, which row of the last logits its
        last token was sampled from; tokens: that token. Returns the likeliest next tokens [rows, num_drafts], and how likely
        each is if those before it are right [rows, num_drafts]."""

    def close(self) -> None: ...


def start_padded(engine: Engine, rows: Sequence[BatchRow]) -> None:
    """Begin a step of the smallest size that the rows fit into: for whoever runs an engine without a scheduler."""
    engine.start(rows, engine.info.grid.up(sum(len(row.tokens) for row in rows)))
