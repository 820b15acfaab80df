"""The error for a model that isn't there."""

from __future__ import annotations

import difflib
import os

from headway.catalog.known import KNOWN
from headway.errors import ModelError


def no_such_model(name: str) -> ModelError:
    """Says whether `name` was taken for a path, and what else it may have meant."""
    separators = [os.sep, *([os.altsep] if os.altsep else [])]
    if any(separator in name for separator in separators) or name.endswith(".gguf"):
        return ModelError(f"there is no file or folder {name}")
    near = difflib.get_close_matches(name.lower(), KNOWN, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    known = ", ".join(sorted(KNOWN))
    return ModelError(
        f"unknown model {name!r}{hint} (known: {known}; or hf:ORG/REPO, or the path of a GGUF or an OpenVINO folder)"
    )
