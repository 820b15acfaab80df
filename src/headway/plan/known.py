"""Models known by name. The figures are those of their public config.json (`models/known.json` names each source)."""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from headway.errors import UsageError
from headway.plan.config_json import shape_of
from headway.plan.shape import ModelShape

Entry = dict[str, Any]


@cache
def entries() -> dict[str, Entry]:
    """All known models by their names."""
    found: dict[str, Entry] = json.loads(files("headway.plan").joinpath("models/known.json").read_text("utf-8"))
    return found


def find(name: str) -> str | None:
    """The catalogue's name of a model: by that name, an alias, or a repository's name; precisions at its end don't matter."""
    wanted = _plain(name)
    for known, entry in entries().items():
        if wanted in {
            known,
            entry["repository"].lower(),
            *(_plain(one) for one in (entry["repository"], *entry.get("aliases", []))),
        }:
            return known
    return None


def known_shape(name: str) -> ModelShape:
    """The shape of a known model. Raises UsageError with the nearest names."""
    known = find(name)
    if known is None:
        raise UsageError(f"model {name!s:.80} isn't known{nearest(name)}")
    return shape_of(entries()[known]["config"], known, known)


def nearest(name: str) -> str:
    """The end of a message: the names that are most like it, or all."""
    close = get_close_matches(_plain(name), list(entries()), 3, 0.5)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; known are {', '.join(entries())}; or give a config.json or a GGUF file"


def _plain(name: str) -> str:
    name = name.lower().rpartition("/")[2].replace("meta-llama-", "llama-")
    for ending in ("-instruct-fp8", "-instruct", "-nvfp4", "-fp8", "-base", "-v0.1"):
        name = name.removesuffix(ending)
    return name
