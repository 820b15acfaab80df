"""Where headway keeps what it pulled."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from headway.errors import UsageError


def home() -> Path:
    """The cache folder: HEADWAY_HOME, or the platform's own for caches. It need not exist yet."""
    override = os.environ.get("HEADWAY_HOME")
    folder = Path(override).expanduser() if override else Path(platformdirs.user_cache_dir("headway", appauthor=False))
    return folder.absolute()


def models_dir() -> Path:
    """The folder of the pulled models, made if need be. Raises UsageError if that can't be."""
    folder = home() / "models"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "set HEADWAY_HOME to a folder that can be written to"
        raise UsageError(f"the folder {folder} can't be made: {error.strerror or error}; {hint}") from None
    return folder
