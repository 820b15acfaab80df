"""The tokens of a model: what bytes they stand for, and which of them begin and end a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headway.catalog import gguf_file
from headway.errors import ModelError

_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6  # GGUF token types that have text; unknown, control and unused ones have none
_DOCUMENT_END = b"<|endoftext|>"
# Many models state one end-of-sequence token and were trained on several. Control tokens of these names end a turn or a
# document wherever they are used, and would otherwise be generated as nothing at all.
_ENDS = frozenset(
    {_DOCUMENT_END, b"<|im_end|>", b"<|eot_id|>", b"<|eom_id|>", b"<|end_of_text|>", b"<end_of_turn>", b"<eos>", b"</s>"}
)
# Control tokens that say what follows them: a tool call can't be told from text without them.
_MARKS = frozenset({b"<tool_call>", b"</tool_call>", b"<|python_tag|>", b"[TOOL_CALLS]", b"[ARGS]", b"[CALL_ID]"})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """token_bytes[id]: what a token adds to the output, b"" for special ones, other than the marks of tool calls.
    max_token_bytes: the most bytes of input that become one token (special ones, written out, included).

    eos_ids: what ends a generation, not empty. adds_bos: whether a prompt begins with bos_id. start_of_document: from where
    an empty prompt starts: bos if the model adds it, else `<|endoftext|>`, the token between documents, else bos, else eos.
    bos, eos: their text, as chat templates write it ("" if there is none).
    """

    token_bytes: list[bytes]
    max_token_bytes: int
    eos_ids: frozenset[int]
    bos_id: int | None
    adds_bos: bool
    start_of_document: int
    bos: str
    eos: str


def from_gguf(info: gguf_file.GgufInfo, ids: Mapping[bytes, int]) -> Vocabulary:
    """`ids`: each token's text and its id, as the tokenizer has them."""
    written = _by_id(ids, info.vocab_size)
    if info.tokenizer_model == "llama":
        written = [_sentencepiece_bytes(text, kind) for text, kind in zip(written, info.token_types, strict=True)]
    shown = [
        text if kind in (_NORMAL, _USER_DEFINED, _BYTE) or text in _MARKS else b""
        for text, kind in zip(written, info.token_types, strict=True)
    ]
    return _vocabulary(written, shown, info.eos_ids, info.bos_id, info.adds_bos)


def from_tokenizer(
    ids: Mapping[bytes, int],
    eos_ids: frozenset[int],
    bos_id: int | None,
    adds_bos: bool,
    shown_text: Callable[[list[int]], list[str]],
) -> Vocabulary:
    """For models that don't state the types of their tokens. `shown_text` gives what each of some tokens adds to an output."""
    vocab_size = max(ids.values(), default=-1) + 1
    written = _by_id(ids, vocab_size)
    suspects = [token for token, text in enumerate(written) if re.fullmatch(rb"<.+>|\[.+\]", text, re.DOTALL)]
    hidden = {token for token, text in zip(suspects, shown_text(suspects), strict=True) if not text}
    special = {token for token in hidden if written[token] not in _MARKS}
    shown = [b"" if token in special else text for token, text in enumerate(written)]
    return _vocabulary(written, shown, eos_ids, bos_id, adds_bos)


def _vocabulary(
    written: list[bytes], shown: list[bytes], eos_ids: frozenset[int], bos_id: int | None, adds_bos: bool
) -> Vocabulary:
    wrong = [token for token in (*eos_ids, *([] if bos_id is None else [bos_id])) if token >= len(written)]
    if wrong:
        raise ModelError(f"the model names {wrong[0]} as a bos or eos token, but has only {len(written)} tokens")
    ends = {token for token, text in enumerate(written) if text in _ENDS and not shown[token]}
    all_ends = eos_ids | ends
    if not all_ends:
        raise ModelError("the model does not say which token ends a text (eos_token_id)")
    eos = min(eos_ids or all_ends)
    if adds_bos and bos_id is not None:
        start = bos_id
    else:
        start = next((token for token in ends if written[token] == _DOCUMENT_END), eos if bos_id is None else bos_id)
    return Vocabulary(
        token_bytes=shown,
        max_token_bytes=max(map(len, written)),
        eos_ids=all_ends,
        bos_id=bos_id,
        adds_bos=adds_bos,
        start_of_document=start,
        bos="" if bos_id is None else written[bos_id].decode("utf-8", "replace"),
        eos=written[eos].decode("utf-8", "replace"),
    )


def _by_id(ids: Mapping[bytes, int], vocab_size: int) -> list[bytes]:
    written = [b""] * vocab_size
    for text, token in ids.items():
        if 0 <= token < vocab_size:
            written[token] = text
    return written


def _sentencepiece_bytes(text: bytes, kind: int) -> bytes:
    if kind == _BYTE and re.fullmatch(rb"<0x[0-9A-Fa-f]{2}>", text):
        return bytes([int(text[3:5], 16)])
    return text.replace("▁".encode(), b" ")
