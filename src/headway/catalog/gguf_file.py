"""What a GGUF file holds, and whether it can be served."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from headway.catalog.gguf_header import GgufHeader, Scalar, Tensor, printable, read_header
from headway.errors import ModelError

_TOKENS, _TOKEN_TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_EOS = "tokenizer.ggml.eos_token_id"
_OTHER_ENDS = ("tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")
_BOS = "tokenizer.ggml.bos_token_id"


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """Facts of a checked GGUF.

    context_length: tokens it was trained for; vocab_size: tokens. block_count, head_count, head_count_kv: None if not stated.
    tokenizer_model: `gpt2` (byte-level BPE), `llama` (SentencePiece), ...; token_types: GGUF's type of each token (1 normal,
    2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte). eos_ids: what ends a turn or a document; bos_id or None.
    adds_bos: whether a prompt begins with bos. quantization: (type name, tensors of it), most bytes first.
    tensor_bytes, file_size: bytes. licence: as stated, or None.
    """

    path: Path
    architecture: str
    context_length: int
    vocab_size: int
    block_count: int | None
    head_count: int | None
    head_count_kv: int | None
    tokenizer_model: str
    token_types: bytes
    eos_ids: frozenset[int]
    bos_id: int | None
    adds_bos: bool
    chat_template: str | None
    quantization: tuple[tuple[str, int], ...]
    tensor_bytes: int
    file_size: int
    licence: str | None


def inspect(path: Path) -> GgufInfo:
    """Check everything but the values of the weights, in milliseconds. Raises ModelError: one line that names what is wrong."""
    header = read_header(path)
    facts = _Facts(header)
    facts.refuse_parts()
    architecture = facts.text("general.architecture")
    kind = facts.optional_text("general.type") or "model"
    if kind != "model":
        raise ModelError(f"{path} is no model by itself: its general.type is {printable(repr(kind))}")
    context_length = facts.count(f"{architecture}.context_length")
    if _TOKENS not in header.arrays:
        raise facts.missing(_TOKENS)
    vocab_size = header.arrays[_TOKENS].count
    if vocab_size == 0:
        raise ModelError(f"{path}: {_TOKENS} is empty")
    eos_id = facts.token_id(_EOS, vocab_size)
    if eos_id is None:
        raise facts.missing(_EOS)
    other_ends = [facts.token_id(key, vocab_size) for key in _OTHER_ENDS]
    bos_id = facts.token_id(_BOS, vocab_size)
    sizes = _tensor_sizes(header)
    head_count = facts.optional_count(f"{architecture}.attention.head_count")
    return GgufInfo(
        path=path,
        architecture=architecture,
        context_length=context_length,
        vocab_size=vocab_size,
        block_count=facts.optional_count(f"{architecture}.block_count"),
        head_count=head_count,
        head_count_kv=facts.optional_count(f"{architecture}.attention.head_count_kv") or head_count,
        tokenizer_model=facts.text("tokenizer.ggml.model"),
        token_types=facts.token_types(vocab_size),
        eos_ids=frozenset(end for end in (eos_id, *other_ends) if end is not None),
        bos_id=bos_id,
        adds_bos=bos_id is not None and facts.adds_bos(),
        chat_template=facts.optional_text("tokenizer.chat_template") or None,
        quantization=_quantization(header.tensors, sizes),
        tensor_bytes=sum(sizes),
        file_size=header.file_size,
        licence=facts.optional_text("general.license"),
    )


class _Facts:
    """Typed look-ups in a header, whose errors name the key."""

    def __init__(self, header: GgufHeader) -> None:
        self._header = header

    def missing(self, key: str) -> ModelError:
        return ModelError(f"{self._header.path} can't be served: the key {printable(key)} is missing from it")

    def wrong(self, key: str, value: Scalar, expected: str) -> ModelError:
        return ModelError(f"{self._header.path} can't be served: {printable(key)} is {printable(repr(value))}; {expected}")

    def text(self, key: str) -> str:
        value = self.optional_text(key)
        if not value:
            raise self.missing(key)
        return value

    def optional_text(self, key: str) -> str | None:
        value = self._header.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, value, "it has to be text")
        return value

    def count(self, key: str) -> int:
        value = self.optional_count(key)
        if value is None:
            raise self.missing(key)
        return value

    def optional_count(self, key: str) -> int | None:
        """A positive whole number. Where a model has one per layer (an array), the largest."""
        place = self._header.arrays.get(key)
        if place is not None:
            return max(self._header.numbers(key), default=None) if place.count <= 65_536 else None
        value = self._header.values.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise self.wrong(key, value, "it has to be a whole number of at least 1")
        return value

    def token_id(self, key: str, vocab_size: int) -> int | None:
        value = self._header.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < vocab_size:
            raise self.wrong(key, value, f"it has to be a token id from 0 to {vocab_size - 1}")
        return value

    def token_types(self, vocab_size: int) -> bytes:
        place = self._header.arrays.get(_TOKEN_TYPES)
        if place is None:
            return bytes([1]) * vocab_size
        if place.count != vocab_size:
            path = self._header.path
            raise ModelError(f"{path} is damaged: {_TOKEN_TYPES} has {place.count} entries, the vocabulary {vocab_size}")
        return bytes(kind if 0 <= kind <= 6 else 1 for kind in self._header.numbers(_TOKEN_TYPES))

    def adds_bos(self) -> bool:
        """As stated; where it isn't, what these tokenizers are known for."""
        stated = self._header.values.get("tokenizer.ggml.add_bos_token")
        if stated is not None:
            return bool(stated)
        values = self._header.values
        return values.get("tokenizer.ggml.model") == "llama" or values.get("tokenizer.ggml.pre") == "llama-bpe"

    def refuse_parts(self) -> None:
        parts = self._header.values.get("split.count")
        if isinstance(parts, int) and parts > 1:
            raise ModelError(
                f"{self._header.path} is one of {parts} parts of a model: join them first (llama-gguf-split --merge)"
            )


def _tensor_sizes(header: GgufHeader) -> list[int]:
    """Bytes of each tensor, after checking that all of them lie within the file."""
    if not header.tensors:
        raise ModelError(f"{header.path} holds no tensors (a vocabulary only?)")
    sizes = [_tensor_size(header.path, tensor) for tensor in header.tensors]
    ends = [tensor.offset + size for tensor, size in zip(header.tensors, sizes, strict=True)]
    needed = header.data_offset + max(ends)
    if needed > header.file_size:
        raise ModelError(
            f"{header.path} is cut short: it has {header.file_size:,} bytes of at least {needed:,}; download it again"
        )
    return sizes


def _tensor_size(path: Path, tensor: Tensor) -> int:
    try:
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(tensor.type)]
    except (ValueError, KeyError):
        raise ModelError(f"{path}: the tensor {printable(tensor.name)} is of the unknown type {tensor.type}") from None
    if tensor.shape and tensor.shape[0] % block:
        raise ModelError(f"{path} is damaged: rows of the tensor {printable(tensor.name)} don't fill its blocks of {block}")
    return math.prod(tensor.shape) // int(block) * int(block_bytes)


def _quantization(tensors: list[Tensor], sizes: list[int]) -> tuple[tuple[str, int], ...]:
    counts: Counter[int] = Counter(tensor.type for tensor in tensors)
    total: Counter[int] = Counter()
    for tensor, size in zip(tensors, sizes, strict=True):
        total[tensor.type] += size
    return tuple((str(GGMLQuantizationType(kind).name), counts[kind]) for kind, _ in total.most_common())
