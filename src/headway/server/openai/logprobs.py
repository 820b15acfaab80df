"""Log probabilities in the two shapes that OpenAI has for them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

from headway.runtime.api import TokenLogprob

FLOOR = -9999.0
"""What stands for minus infinity, as in OpenAI's API: JSON has no infinity."""


def token_text(raw: bytes) -> str:
    r"""A token's text; one that is a fragment of a character is written as `bytes:\xf0\x9f`, OpenAI's way, never as U+FFFD."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


def chat_logprobs(entries: Sequence[TokenLogprob], token_bytes: Sequence[bytes]) -> dict[str, Any]:
    content = [
        _info(entry.token, entry.logprob, token_bytes)
        | {"top_logprobs": [_info(token, logprob, token_bytes) for token, logprob in entry.top]}
        for entry in entries
    ]
    return {"content": content, "refusal": None}


def _info(token: int, logprob: float, token_bytes: Sequence[bytes]) -> dict[str, Any]:
    raw = token_bytes[token]
    return {"token": token_text(raw), "logprob": max(logprob, FLOOR), "bytes": list(raw)}


Arrays = dict[str, list[Any]]
"""The older shape: four of them, parallel."""


def of_prompt(ids: Sequence[int], text: str, scores: Sequence[TokenLogprob], token_bytes: Sequence[bytes]) -> Arrays:
    """Of a prompt that `text` stands for. scores: of all tokens but the first, of which nothing can be said."""
    arrays = CompletionLogprobs(token_bytes, 0).take(scores)
    nothing: list[Any] = [None]
    return {
        "tokens": [token_text(token_bytes[token]) for token in ids],
        "token_logprobs": nothing + arrays["token_logprobs"],
        "top_logprobs": nothing + arrays["top_logprobs"],
        "text_offset": _offsets(text, [token_bytes[token] for token in ids]),
    }


def _offsets(text: str, pieces: Sequence[bytes]) -> list[int]:
    """Where each piece begins, in characters of the text that they make up. Special tokens stand for no bytes, but may be
    written out in the text: they begin where the piece before them ends."""
    raw = text.encode()
    if b"".join(pieces).decode("utf-8", "replace") != text and (found := _found(raw, pieces)) is not None:
        return found
    return _running(pieces)


def _found(raw: bytes, pieces: Sequence[bytes]) -> list[int] | None:
    """None if they aren't all there, in their order."""
    parts: list[bytes] = []
    at = 0
    for piece in pieces:
        start = raw.find(piece, at)
        if start < 0:
            return None
        parts += raw[at:start], piece
        at = start + len(piece)
    return _running(parts)[1::2]


def _running(pieces: Sequence[bytes]) -> list[int]:
    """Whole characters before each piece."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offsets = [0]
    for piece in pieces:
        offsets.append(offsets[-1] + len(decoder.decode(piece)))
    return offsets[:-1]


class CompletionLogprobs:
    """The older shape: four parallel arrays. Offsets count characters of the choice's text, so pieces must come in order.

    `top_logprobs` holds the chosen token too, where it isn't among the likeliest: up to logprobs + 1 entries, as documented."""

    def __init__(self, token_bytes: Sequence[bytes], offset: int) -> None:
        self._token_bytes = token_bytes
        self._offset = offset
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, entries: Sequence[TokenLogprob]) -> Arrays:
        offsets = []
        for entry in entries:
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(self._token_bytes[entry.token]))
        return {
            "tokens": [self._text(entry.token) for entry in entries],
            "token_logprobs": [max(entry.logprob, FLOOR) for entry in entries],
            "top_logprobs": [self._top(entry) for entry in entries],
            "text_offset": offsets,
        }

    def _top(self, entry: TokenLogprob) -> dict[str, float]:
        ranked = [*entry.top, (entry.token, entry.logprob)]
        return {self._text(token): max(logprob, FLOOR) for token, logprob in reversed(ranked)}

    def _text(self, token: int) -> str:
        return token_text(self._token_bytes[token])
