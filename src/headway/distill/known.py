"""What is kept of a model at each token that it chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headway.distill.answers import Halves, Known
from headway.engines.base import Engine


class Keep(Protocol):
    @property
    def taps(self) -> tuple[int, ...]:
        """Layers whose features the engine has to give."""

    @property
    def facts(self) -> dict[str, Any]:
        """What tells apart stores of different kinds."""

    @property
    def bytes_per_token(self) -> int: ...

    def of(self, engine: Engine, logits: NDArray[np.float32]) -> Known:
        """Of the step that has just ended and its logits [sampled, vocabulary]: an entry for each."""


@dataclass(frozen=True, slots=True)
class Features:
    """The residual stream after some layers, one after the other [sampled, layers * hidden]: what a draft head reads."""

    layers: tuple[int, ...]
    hidden: int

    @property
    def taps(self) -> tuple[int, ...]:
        return self.layers

    @property
    def facts(self) -> dict[str, Any]:
        return {"layers": list(self.layers), "hidden": self.hidden}

    @property
    def bytes_per_token(self) -> int:
        return 2 * len(self.layers) * self.hidden

    def of(self, engine: Engine, logits: NDArray[np.float32]) -> Halves:
        return engine.features(range(len(logits))).astype(np.float16)


@dataclass(frozen=True, slots=True)
class Likeliest:
    """The tokens that the model found likeliest, likeliest first, and their log-probabilities: what a smaller model learns
    from. An entry has `ids` [count] and `logprobs` [count]; where fewer matter at all, ids 0 with -inf follow."""

    count: int = 32

    RANGE = 12.0
    """Logits that far below the highest don't matter: e^-12."""

    @property
    def taps(self) -> tuple[int, ...]:
        return ()

    @property
    def facts(self) -> dict[str, Any]:
        return {"likeliest": self.count}

    @property
    def bytes_per_token(self) -> int:
        return self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([("ids", np.int32, self.count), ("logprobs", np.float16, self.count)])

    def of(self, engine: Engine, logits: NDArray[np.float32]) -> Known:
        return self.among(logits)

    def among(self, logits: NDArray[np.float32]) -> Known:
        """logits: [n, vocabulary]."""
        out = np.zeros(len(logits), self.dtype)
        out["logprobs"] = -np.inf
        for row, entry in zip(logits, out, strict=True):
            highest = row.max()
            total = highest + np.log(np.exp(row - highest).sum())
            near = np.flatnonzero(row > highest - self.RANGE)  # a few of a large vocabulary: sorting all of it takes long
            best = near[np.argsort(-row[near], kind="stable")[: self.count]]
            entry["ids"][: len(best)] = best
            entry["logprobs"][: len(best)] = row[best] - total
        return out
