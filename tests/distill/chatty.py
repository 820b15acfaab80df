"""A made-up model that chats, for tests of collecting: what it says follows from its last token, and its features say where
it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.engines.base import BatchRow, EngineInfo
from headway.scheduler.sizes import Grid

VOCABULARY = 260
END = 256
WIDTH = 6


class ByteTokenizer:
    """One token per byte, and an end token."""

    token_bytes = [bytes([b]) for b in range(256)] + [b""] * 4
    eos_ids = frozenset({END})

    def encode_prompt(self, text: str) -> list[int]:
        return list(text.encode()) or [END]


class ChattyEngine:
    """After each token comes a letter drawn from the text before it (so the same in any batch), at last END: when the text has
    ends_at tokens; asks_until, if given, while it is still what a user says.

    features of a token that was sampled at position p after the token t: [p, t, 0, 0, 0, 0].
    """

    def __init__(self, *, ends_at: int = 90, asks_until: int = 0, num_blocks: int = 4000, context_length: int = 400) -> None:
        self.info = EngineInfo(
            VOCABULARY, context_length, 4, num_blocks, 8, 1000, True, "chatty", grid=Grid(((64, 4), (4096, 16)))
        )
        self.ends_at = ends_at
        self.asks_until = asks_until
        self.most_rows = 0
        self._texts: dict[int, list[int]] = {}
        self._logits: NDArray[np.float32] = np.zeros((0, VOCABULARY), np.float32)
        self._features: NDArray[np.float32] = np.zeros((0, WIDTH), np.float32)

    def start(self, rows: Sequence[BatchRow], size: int) -> None:
        assert sum(len(row.tokens) for row in rows) <= size
        used = [block for row in rows for block in row.blocks]
        assert len(used) == len(set(used)), "two rows share a block"
        assert max(used) < self.info.num_blocks
        self.most_rows = max(self.most_rows, len(rows))
        logits, features = [], []
        for row in rows:
            assert len(row.blocks) * self.info.block_size >= row.start + len(row.tokens)
            text = self._texts.setdefault(row.blocks[0], [])
            del text[row.start :]
            assert len(text) == row.start, "a gap in what was computed"
            text += row.tokens
            if row.num_sampled:
                logits.append(self._next(text))
                features.append([len(text) - 1, text[-1], 0, 0, 0, 0])
        self._logits = np.array(logits, np.float32).reshape(-1, VOCABULARY)
        self._features = np.array(features, np.float32).reshape(-1, WIDTH)

    def _next(self, text: list[int]) -> NDArray[np.float32]:
        logits = np.full(VOCABULARY, -50.0, np.float32)
        said = bytes(t for t in text if t < END)
        is_asking = self.asks_until and b"<assistant>" not in said
        if len(text) >= (self.asks_until if is_asking else self.ends_at):
            logits[END] = 50.0
            return logits
        state = sum(text[-5:]) * 31 + len(text) * 7
        logits[97 : 97 + 20] = np.random.default_rng(state).normal(size=20) * 2
        return logits

    def wait(self) -> NDArray[np.float32]:
        return self._logits

    def features(self, places: Sequence[int]) -> NDArray[np.float32]:
        return self._features[list(places)]

    def close(self) -> None: ...


class Template:
    def render(self, messages: Sequence[dict[str, Any]], *, tools: Any = None) -> str:
        return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"
