"""Where draft heads lie: a file each, named after the model's digest, in a folder of the user's or in headway's own."""

from __future__ import annotations

from pathlib import Path

from headway.catalog.home import home

FOLDER = Path(__file__).parent / "heads"
DIGITS = 16
"""Of the digest, as in the names of converted models."""


def head_for(sha256: str) -> Path | None:
    """The draft head for the model with this digest: one made here, else the one that comes with headway, else None."""
    for path in (own_path(sha256), FOLDER / _name(sha256)):
        if path.is_file():
            return path
    return None


def own_path(sha256: str) -> Path:
    """Where a head made on this machine is kept and looked for; the folder need not exist yet."""
    return home() / "heads" / _name(sha256)


def _name(sha256: str) -> str:
    return f"{sha256[:DIGITS]}.safetensors"
