"""Tiny GGUF files, IR folders and wheels, made by hand: good ones, and broken in one place."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
_FORMATS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q"}

TOKENS = ["<|endoftext|>", "<|im_end|>", "a", "b"]
PAIRS: dict[str, tuple[int, Any]] = {
    "general.architecture": (STRING, "llama"),
    "general.license": (STRING, "mit"),
    "llama.context_length": (U32, 512),
    "llama.block_count": (U32, 2),
    "llama.attention.head_count": (U32, 9),
    "llama.attention.head_count_kv": (U32, 3),
    "tokenizer.ggml.model": (STRING, "gpt2"),
    "tokenizer.ggml.tokens": (ARRAY, (STRING, TOKENS)),
    "tokenizer.ggml.token_type": (ARRAY, (I32, [3, 3, 1, 1])),
    "tokenizer.ggml.eos_token_id": (U32, 1),
    "tokenizer.chat_template": (STRING, "{{ messages }}"),
}


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind: int, content: Any) -> bytes:
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        inner, items = content
        return struct.pack("<IQ", inner, len(items)) + b"".join(value(inner, item) for item in items)
    return struct.pack(_FORMATS[kind], content)


def tensor(name: str, shape: list[int], kind: int, offset: int) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def gguf(
    changes: dict[str, tuple[int, Any] | None] | None = None,
    *,
    tensors: list[bytes] | None = None,
    data: int = 4096,
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """A GGUF; `changes` sets or (None) drops metadata, `data` is the number of bytes of tensor data, `counts` lies about the
    numbers of tensors and pairs."""
    pairs = {key: pair for key, pair in (PAIRS | (changes or {})).items() if pair is not None}
    entries = [tensor("token_embd.weight", [32, 16], 3, 0)] if tensors is None else tensors  # type 3 is Q4_1
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(entries), len(pairs))))
    head += b"".join(string(key) + struct.pack("<I", kind) + value(kind, content) for key, (kind, content) in pairs.items())
    head += b"".join(entries)
    return head + bytes(-len(head) % 32) + bytes(data)


def ir_folder(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("openvino_model", "openvino_tokenizer"):
        (folder / f"{name}.xml").write_text("<net/>")
        (folder / f"{name}.bin").write_bytes(b"x")
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 256} | config))
    return folder


def wheel(folder: Path, distribution: str, member: str, content: bytes) -> Path:
    """A wheel of version 1.0 with one file in it, and a requirement that nobody can meet."""
    name = distribution.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        info = f"{name}-1.0.dist-info"
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\nRequires-Dist: no-such-thing-at-all\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
