"""What a file is that should be a GGUF and isn't: the usual accidents of downloading."""

from __future__ import annotations

import re
import stat
from pathlib import Path

_MAGICS = {
    b"FUGG": "byte-swapped (the magic reads FUGG)",
    b"GGML": "GGML, the format before GGUF; get a GGUF of this model",
    b"ggml": "GGML, the format before GGUF; get a GGUF of this model",
    b"lmgg": "GGML, the format before GGUF; get a GGUF of this model",
    b"fmgg": "GGML, the format before GGUF; get a GGUF of this model",
    b"tjgg": "GGML, the format before GGUF; get a GGUF of this model",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x1f\x8b": "a gzip archive; unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstd archive; unpack it first",
}


def looks_like(path: Path) -> str | None:
    """What the file seems to be, as words after "it is", or None if it begins as a GGUF does.

    Opens nothing but regular files (a named pipe would wait for ever).
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return "a folder"
        if not stat.S_ISREG(mode):
            return "not a regular file"
        with path.open("rb") as file:
            head = file.read(512)
    except (OSError, ValueError) as error:
        return f"unreadable ({getattr(error, 'strerror', None) or error})"
    return _judge(head)


def _judge(head: bytes) -> str | None:
    if head[:4] == b"GGUF":
        return None
    if not head:
        return "empty"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself; run `git lfs pull`"
    if re.match(rb"\s*<[!?A-Za-z]", head):
        return "HTML or XML (it looks like a web page); the download went wrong"
    for magic, meaning in _MAGICS.items():
        if head.startswith(magic):
            return meaning
    if len(head) > 9 and head[8:9] == b"{":
        return "a safetensors file; get a GGUF of this model"
    return f"something else (it begins with {head[:4]!r}, not b'GGUF')"
