"""An engine without a model, for tests of the loop: what follows a token is a fixed function of it, and it checks its books."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.engines.base import BatchRow, EngineInfo

VOCAB = 300


def following(token: int) -> int:
    return (token * 7 + 3) % 256


def chain(token: int, n: int) -> list[int]:
    """The n tokens that follow."""
    out = []
    for _ in range(n):
        token = following(token)
        out.append(token)
    return out


class FakeEngine:
    """Remembers what was written to each block, and fails if a row is given blocks that don't hold its own past."""

    def __init__(self, *, num_blocks: int = 64, block_size: int = 4, context_length: int = 128, seconds: float = 0.0) -> None:
        self.info = EngineInfo(VOCAB, context_length, block_size, num_blocks, 8, 1000, True, "fake")
        self.seconds = seconds
        self.fail_at: int | None = None
        self.fail_start_at: int | None = None
        self.num_steps = 0
        self.num_copied = 0
        self.rows_seen: list[int] = []
        self.gate: threading.Event | None = None
        self._memory = np.full((num_blocks, block_size), -1, np.int64)
        self._logits: NDArray[np.float32] | None = None

    def copy(self, source: int, destination: int, num_tokens: int) -> None:
        self.num_copied += num_tokens
        self._memory[destination, :num_tokens] = self._memory[source, :num_tokens]

    def start(self, rows: Sequence[BatchRow], size: int) -> None:
        assert size >= sum(len(row.tokens) for row in rows)
        self.num_steps += 1
        if self.num_steps == self.fail_start_at:
            raise RuntimeError("made to fail at its start")
        self.rows_seen.append(len(rows))
        out = []
        for row in rows:
            for offset, token in enumerate(row.tokens):
                at = row.start + offset
                self._memory[row.blocks[at // self.info.block_size], at % self.info.block_size] = token * 1000 + at
            past = [
                self._memory[row.blocks[p // self.info.block_size], p % self.info.block_size] % 1000 for p in range(row.start)
            ]
            assert past == list(range(row.start)), "a row's past is not in its blocks"
            for token in row.tokens[len(row.tokens) - row.num_sampled :]:
                logits = np.zeros(VOCAB, np.float32)
                logits[following(token)] = 9.0
                out.append(logits)
        self._logits = np.array(out, np.float32).reshape(-1, VOCAB)

    def wait(self) -> NDArray[np.float32]:
        if self.gate is not None:
            assert self.gate.wait(10)
        time.sleep(self.seconds)
        if self.fail_at is not None and self.num_steps >= self.fail_at:
            raise RuntimeError("made to fail")
        assert self._logits is not None
        return self._logits

    def close(self) -> None:
        self._logits = None
