"""A model on disk, checked and ready to be loaded."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from headway.catalog import gguf_file, ir_folder
from headway.errors import ModelError

_ID_LENGTH = 96


@dataclass(frozen=True)
class LocalModel:
    """path: absolute; a GGUF file or an IR folder. id: printable ASCII without spaces, for JSON and HTTP headers.
    size: bytes on disk. context_length: tokens. chat_template: what replaces the model's own, or None."""

    path: Path
    kind: Literal["gguf", "ir"]
    id: str
    size: int
    context_length: int
    licence: str | None
    chat_template: str | None = None

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the weights' file (an IR: of all its files, one after the other). Reads them whole, once."""
        files = [self.path] if self.kind == "gguf" else ir_folder.model_files(self.path)
        digest = hashlib.sha256()
        try:
            for path in files:
                with path.open("rb") as file:
                    while piece := file.read(1 << 20):
                        digest.update(piece)
        except OSError as error:
            raise ModelError(f"{error.filename or self.path} can't be read: {error.strerror or error}") from None
        return digest.hexdigest()


def as_path(name: str) -> Path:
    """`~` stands for the home folder, where there is one."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def open_local(path: Path, name: str | None = None) -> LocalModel:
    """Check the GGUF file or IR folder at `path`; `name` replaces its own name as the source of the id. Raises ModelError.

    Symbolic links are kept, not followed: the target of one may have no telling name (and no suffix, which engines go by).
    """
    path = path.absolute()
    if path.is_dir():
        return _open_folder(path, name or path.resolve().name)
    info = gguf_file.inspect(path)
    if path.suffix != ".gguf":
        raise ModelError(f"{path} is a GGUF, but not named like one: give it a name that ends in .gguf")
    return LocalModel(
        path=path,
        kind="gguf",
        id=printable_id(name or path.stem),
        size=info.file_size,
        context_length=info.context_length,
        licence=info.licence,
    )


def _open_folder(path: Path, name: str) -> LocalModel:
    info = ir_folder.inspect(path)
    if info.context_length is None:
        raise ModelError(f"{path} can't be served: max_position_embeddings is missing from its config.json")
    return LocalModel(
        path=path,
        kind="ir",
        id=printable_id(name),
        size=info.file_size,
        context_length=info.context_length,
        licence=info.licence,
    )


def printable_id(name: str) -> str:
    """`name` in letters, digits, `.`, `_` and `-` of ASCII. If letters had to be left out, a piece of the name's hash keeps
    different names different."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-.")[:_ID_LENGTH]
    lost = any(char.isalnum() and not unicodedata.normalize("NFKD", char).encode("ascii", "ignore") for char in name)
    if plain and not lost:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{plain or 'model'}-{mark}"
