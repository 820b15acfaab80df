"""What a distillation is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_LAYERS, DEFAULT_TOKENS, DEFAULT_EPOCHS = 8, 1_000_000, 4.0


@dataclass(frozen=True, slots=True)
class DistillOptions:
    """As on the command line. epochs, minutes, steps: at most one of them. layers, out, data, work: None = the default.
    vocabulary: tokens that the spark speaks with; None = the teacher's. start: a spark to go on from."""

    layers: int | None = None
    out: Path | None = None
    tokens: int = DEFAULT_TOKENS
    data: Path | None = None
    epochs: float | None = None
    minutes: float | None = None
    steps: int | None = None
    quantization: str = "q8_0"
    vocabulary: int | None = None
    start: str | None = None
    work: Path | None = None
    resume: bool = False


@dataclass(frozen=True, slots=True)
class Begun:
    """A spark that is gone on from. kept: which of its teacher's layers it was made of."""

    name: str
    path: Path
    sha256: str
    kept: tuple[int, ...]
