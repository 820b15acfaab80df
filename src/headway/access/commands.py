"""`headway key new`: a key for its user, and its hash for headway.toml."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from headway.access.keys import hash_of, new_key
from headway.config import DEFAULT_FILE, Settings, load
from headway.errors import HeadwayError, UsageError
from headway.modes import ModeName


def new_key_command(name: str | None, modes: str | None, config: Path | None, *, write: bool) -> None:
    """Print the key, once, and the TOML that makes it valid; write: append that to `config`, or to ./headway.toml.
    modes: by comma. The key alone goes to stdout. Raises HeadwayError."""
    file = config or DEFAULT_FILE
    there = load(file) if file.is_file() else Settings()
    name = name or f"key-{secrets.token_hex(3)}"
    if name in there.keys:
        raise UsageError(f"{file} already has a key named {name}; give another --name")
    key = new_key()
    wanted = [word.strip() for word in modes.split(",")] if modes is not None else []
    section = _section(name, hash_of(key), wanted)
    there.with_overrides({"keys": {**there.model_dump()["keys"], name: _as_settings(key, wanted)}})  # says what is wrong
    if write:
        _append(file, section)
        print(f"{name} is in {file} now; a running server knows it after its next start.", file=sys.stderr)
    else:
        print(f"Put this into {file}:\n\n{section}", file=sys.stderr)
    print("The key, shown this once:", file=sys.stderr)
    print(key)


def _as_settings(key: str, modes: Sequence[str]) -> dict[str, object]:
    return {"hash": hash_of(key), **({"modes": list(modes)} if modes else {})}


def _section(name: str, digest: str, modes: Sequence[str]) -> str:
    header = f"[keys.{name}]" if name.replace("-", "").replace("_", "").isalnum() else f'[keys."{name}"]'
    words = ", ".join(f'"{mode}"' for mode in modes or ModeName)
    return f'{header}\nhash = "{digest}"\nmodes = [{words}]\n'


def _append(file: Path, section: str) -> None:
    try:
        before = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
        with file.open("a", encoding="utf-8") as out:
            out.write(("" if not before else "\n" if before.endswith("\n") else "\n\n") + section)
    except OSError as error:
        raise HeadwayError(f"{file} can't be written: {error.strerror or error}") from None
