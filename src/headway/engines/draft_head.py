"""A draft head on disk: a small network that guesses the next tokens from what the model itself knew at the last one.

It belongs to one model and shares its embeddings and its output matrix, so that the file holds little: 4 MB for SmolLM2. The
form is that of recurrent drafters (Zhang et al., "Recurrent Drafter for Fast Speculative Decoding", 2024):

    state = fuse(features of the last token)
    for each token ahead:  state = blocks(join(state, embedding of the token before it));  logits = vocabulary(state)

where features are the residual stream after some layers, fuse and join are matrices, and blocks gated feed-forward layers as
the model has them. Before every matrix stands a root-mean-square norm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from headway.errors import ModelError

Floats = NDArray[np.float32]

FORMAT = "headway-draft-head-1"
EPSILON = 1e-5
"""Added to the mean square in each norm."""
SCALE = ".scale"


@dataclass(frozen=True, slots=True)
class Block:
    """A gated feed-forward layer with its residual: x + down(silu(gate(n)) * up(n)), n the norm of x times gain [hidden].
    gate, up: [inner, hidden]; down: [hidden, inner]."""

    gain: Floats
    gate: Floats
    up: Floats
    down: Floats


@dataclass(frozen=True, slots=True)
class DraftHead:
    """layers: after which of the model's layers the features are taken, from 0, the last one included. vocabulary: the ids that
    it can guess [n]. fuse: [hidden, features], feature_gain: [features], features being len(layers) * hidden. join:
    [hidden, 2 * hidden], for the state and the embedding, state_gain and embedding_gain: [hidden]. output_gain: [hidden], on
    top of the model's own last norm. card: what it was trained on and what it reached, for people."""

    layers: tuple[int, ...]
    vocabulary: NDArray[np.int32]
    fuse: Floats
    feature_gain: Floats
    join: Floats
    state_gain: Floats
    embedding_gain: Floats
    output_gain: Floats
    blocks: tuple[Block, ...]
    card: Mapping[str, object] = field(default_factory=dict)

    @property
    def hidden(self) -> int:
        return len(self.output_gain)

    def save(self, path: Path) -> None:
        """Matrices as int8 with a scale per output, everything else as it is. Raises OSError."""
        tensors: dict[str, NDArray[np.generic]] = {
            "vocabulary": self.vocabulary,
            "feature_gain": self.feature_gain,
            "state_gain": self.state_gain,
            "embedding_gain": self.embedding_gain,
            "output_gain": self.output_gain,
        }
        matrices = {"fuse": self.fuse, "join": self.join}
        for i, block in enumerate(self.blocks):
            tensors[f"blocks.{i}.gain"] = block.gain
            matrices |= {f"blocks.{i}.gate": block.gate, f"blocks.{i}.up": block.up, f"blocks.{i}.down": block.down}
        for name, matrix in matrices.items():
            tensors[name], tensors[name + SCALE] = quantized(matrix)
        metadata = {"format": FORMAT, "layers": json.dumps(self.layers), "card": json.dumps(self.card)}
        path.write_bytes(save({name: np.ascontiguousarray(t) for name, t in tensors.items()}, metadata))

    @classmethod
    def load(cls, path: Path) -> DraftHead:
        """Raises ModelError for a file that isn't a draft head."""
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"the draft head {path} can't be read: {error}") from None
        if metadata.get("format") != FORMAT:
            raise ModelError(f"{path} is not a draft head of this version of headway ({FORMAT}): train it anew")
        try:
            head = cls._made_of(tensors, metadata)
            head._check()
        except KeyError as error:
            raise ModelError(f"the draft head {path} is damaged: it has no {error}") from None
        except (ValueError, TypeError) as error:
            raise ModelError(f"the draft head {path} is damaged: {error}") from None
        return head

    def check_fits(self, path: Path, hidden: int, vocab_size: int) -> None:
        """Raises ModelError if this head, from the file `path`, can't be one of a model of these sizes."""
        wrong = ""
        if self.hidden != hidden:
            wrong = f"it is made for a hidden size of {self.hidden}, this model has {hidden}"
        elif self.vocabulary.max() >= vocab_size:
            wrong = f"it guesses token {self.vocabulary.max()}, this model has {vocab_size}"
        if wrong:
            raise ModelError(f"the draft head {path} belongs to another model: {wrong}")

    @classmethod
    def _made_of(cls, tensors: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str]) -> DraftHead:
        def floats(name: str) -> Floats:
            values = tensors[name]
            scale = tensors[name + SCALE].astype(np.float32) if values.dtype == np.int8 else np.float32(1)
            return values.astype(np.float32) * scale

        count = sum(name.endswith(".gain") for name in tensors)
        return cls(
            layers=tuple(int(n) for n in json.loads(metadata["layers"])),
            vocabulary=tensors["vocabulary"].astype(np.int32),
            fuse=floats("fuse"),
            feature_gain=floats("feature_gain"),
            join=floats("join"),
            state_gain=floats("state_gain"),
            embedding_gain=floats("embedding_gain"),
            output_gain=floats("output_gain"),
            blocks=tuple(
                Block(*(floats(f"blocks.{i}.{part}") for part in ("gain", "gate", "up", "down"))) for i in range(count)
            ),
            card=json.loads(metadata["card"]),
        )

    def _check(self) -> None:
        """Raises ValueError."""
        d, features = self.hidden, len(self.layers) * self.hidden
        shapes: dict[str, tuple[Floats, tuple[int, ...]]] = {
            "output_gain": (self.output_gain, (d,)),
            "fuse": (self.fuse, (d, features)),
            "feature_gain": (self.feature_gain, (features,)),
            "join": (self.join, (d, 2 * d)),
            "state_gain": (self.state_gain, (d,)),
            "embedding_gain": (self.embedding_gain, (d,)),
        }
        for i, block in enumerate(self.blocks):
            inner = block.gate.shape[0] if block.gate.ndim else 0
            shapes |= {
                f"blocks.{i}.gain": (block.gain, (d,)),
                f"blocks.{i}.gate": (block.gate, (inner, d)),
                f"blocks.{i}.up": (block.up, (inner, d)),
                f"blocks.{i}.down": (block.down, (d, inner)),
            }
        for name, (values, shape) in shapes.items():
            if values.shape != shape:
                raise ValueError(f"{name} has the shape {values.shape} instead of {shape}")
            if not np.isfinite(values).all():
                raise ValueError(f"{name} holds values that are no numbers")
        if self.vocabulary.ndim != 1 or not len(self.vocabulary) or self.vocabulary.min() < 0:
            raise ValueError("its vocabulary is no list of token ids")
        if not self.layers or min(self.layers) < 0:
            raise ValueError(f"it reads the layers {list(self.layers)}")


def quantized(matrix: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """[outputs, inputs] as int8 and a scale [outputs, 1]."""
    scale = (np.abs(matrix).max(1, keepdims=True) / 127.0).astype(np.float16)
    scale[scale == 0] = np.float16(1e-4)
    return np.clip(np.rint(matrix / scale.astype(np.float32)), -127, 127).astype(np.int8), scale
