"""Draft heads that come with headway: a file each, in the folder `heads`, named after the model's digest."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "heads"
DIGITS = 16
"""Of the digest, as in the names of converted models."""


def head_for(sha256: str) -> Path | None:
    """The draft head for the model with this digest; None if headway has none."""
    path = FOLDER / f"{sha256[:DIGITS]}.safetensors"
    return path if sha256 and path.is_file() else None
