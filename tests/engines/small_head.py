"""A made-up model's ends and a draft head for them, small and the same every time."""

from __future__ import annotations

import numpy as np

from headway.engines.draft_head import Block, DraftHead, Floats
from headway.engines.graph import Ends

HIDDEN, VOCABULARY, INNER, LAYERS = 64, 300, 96, (0, 3)


def small_ends(seed: int = 0) -> Ends:
    r = np.random.default_rng(seed)
    return Ends(normal(r, VOCABULARY, HIDDEN), 1 + 0.1 * normal(r, HIDDEN), 0.4 * normal(r, VOCABULARY, HIDDEN))


def small_head(seed: int = 1, blocks: int = 2) -> DraftHead:
    r = np.random.default_rng(seed)
    d, features = HIDDEN, HIDDEN * len(LAYERS)
    return DraftHead(
        layers=LAYERS,
        vocabulary=np.arange(5, VOCABULARY, 3, dtype=np.int32),
        fuse=normal(r, d, features) / features**0.5,
        feature_gain=1 + 0.1 * normal(r, features),
        join=normal(r, d, 2 * d) / (2 * d) ** 0.5,
        state_gain=1 + 0.1 * normal(r, d),
        embedding_gain=1 + 0.1 * normal(r, d),
        output_gain=1 + 0.1 * normal(r, d),
        blocks=tuple(
            Block(1 + 0.1 * normal(r, d), normal(r, INNER, d) / 8, normal(r, INNER, d) / 8, normal(r, d, INNER) / 10)
            for _ in range(blocks)
        ),
        card={"model": "made up", "tokens": 12},
    )


def normal(r: np.random.Generator, *shape: int) -> Floats:
    return r.normal(size=shape).astype(np.float32)
