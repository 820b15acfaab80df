"""Text to token ids and back."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import openvino_genai

from headway.catalog import gguf_file, ir_folder
from headway.catalog.gguf_copy import READABLE_NAMES, copy_without_tensors
from headway.errors import ModelError, RequestError
from headway.text.vocabulary import Vocabulary, from_gguf, from_tokenizer

_IN_PLACE = {"NUM_STREAMS": 0}
"""Has the calling thread do the work: handing a short text over to another and back takes as long as tokenizing it."""
_UNSTATED_CONTEXT = 131_072  # tokens; only bounds the search for a tokenizer's own limit


_AROUND_SEAMS = (("a b", "\n\n c"), ("word", "word"), ("1", "1"), ("\n", "\n"), (" ", "  x"), ("é", "\u0301."), ("<", "<|"))
"""What would be tokenized otherwise together than apart, if anything were."""


@dataclass(frozen=True, slots=True)
class Seam:
    """A special token behind which a text can be cut, and its parts be tokenized on their own. text, token: what is written
    for it, and its id."""

    text: str
    token: int


class Tokenizer:
    """Wraps openvino_genai.Tokenizer; loaded from a GGUF or an OpenVINO IR folder. encode() may be called from any thread
    (the wrapped tokenizer hands each call an inference request of its own, and leaves the GIL free).

    vocab_size; eos_ids: the ids that end a generation; token_bytes[id]: the bytes a token stands for (b"" for special ones);
    max_token_bytes: a text of n bytes has at least n / max_token_bytes tokens; start_of_document: see Vocabulary;
    bos, eos: text of these tokens; chat_template: the model's own, or None; seam: eos, if texts can be cut there.
    """

    def __init__(
        self, native: openvino_genai.Tokenizer, vocabulary: Vocabulary, chat_template: str | None, context_length: int
    ) -> None:
        self.vocab_size = len(vocabulary.token_bytes)
        self.token_bytes = vocabulary.token_bytes
        self.max_token_bytes = vocabulary.max_token_bytes
        self.eos_ids = vocabulary.eos_ids
        self.start_of_document = vocabulary.start_of_document
        self.bos = vocabulary.bos
        self.eos = vocabulary.eos
        self.chat_template = chat_template
        self._first = vocabulary.bos_id if vocabulary.adds_bos else None
        self._native = native
        self._limit = _silent_limit(native, context_length)
        self.seam = _seam(native, vocabulary.eos)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Takes one or two seconds. Raises ModelError."""
        return cls._load_ir(path) if path.is_dir() else cls._load_gguf(path)

    @classmethod
    def _load_gguf(cls, path: Path) -> Tokenizer:
        info = gguf_file.inspect(path)
        if all(name in READABLE_NAMES for name, _ in info.quantization):
            native = _open(path)
        else:
            with tempfile.TemporaryDirectory() as folder:
                facts = Path(folder) / "tokenizer.gguf"
                copy_without_tensors(path, facts)
                native = _open(facts)
        return cls(native, from_gguf(info, native.get_vocab()), info.chat_template, info.context_length)

    @classmethod
    def _load_ir(cls, path: Path) -> Tokenizer:
        info = ir_folder.inspect(path)
        native = _open(path)
        eos_ids = info.eos_ids or frozenset(_stated(native.get_eos_token_id()))
        bos_id = next(iter(_stated(native.get_bos_token_id())), None)
        with_specials = _ids(native, "a", add_special_tokens=True)
        vocabulary = from_tokenizer(
            native.get_vocab(),
            eos_ids,
            bos_id,
            adds_bos=bos_id is not None and with_specials[:1] == [bos_id],
            shown_text=lambda tokens: list(native.decode([[token] for token in tokens])) if tokens else [],
        )
        template = info.chat_template or native.get_original_chat_template() or None
        return cls(native, vocabulary, template, info.context_length or _UNSTATED_CONTEXT)

    def encode(self, text: str) -> list[int]:
        """Ids of `text`; special tokens written out in it (<|im_start|>) are recognised, none is added.

        Raises RequestError(400) for text that isn't Unicode (a lone surrogate), and for text longer than the model's context
        if the tokenizer would cut it in silence.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"the text holds half a character (a lone surrogate, U+{ord(text[error.start]):04X})"
            raise RequestError(400, message) from None
        ids = _ids(self._native, text)
        if self._limit is not None and len(ids) >= self._limit:
            message = f"the text is too long: {self._limit} tokens or more"
            raise RequestError(400, message, code="context_length_exceeded")
        return ids

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a whole prompt, raw or from a chat template; never empty. It begins with bos if the model wants that: once,
        also if the template wrote it. An empty text is the start of a document. Raises what encode() raises."""
        ids = self.encode(text)
        if not ids:
            return [self.start_of_document]
        if self._first is not None and ids[0] != self._first:
            ids.insert(0, self._first)
        return ids


def _open(path: Path) -> openvino_genai.Tokenizer:
    try:
        return openvino_genai.Tokenizer(str(path), **_IN_PLACE)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"the tokenizer of {path} can't be loaded: {reason}") from None


def _ids(native: openvino_genai.Tokenizer, text: str, add_special_tokens: bool = False) -> list[int]:
    ids: list[int] = native.encode(text, add_special_tokens=add_special_tokens).input_ids.data[0].tolist()
    return ids


def _silent_limit(native: openvino_genai.Tokenizer, context_length: int) -> int | None:
    """After how many tokens the tokenizer cuts a text without saying so (its graph holds the model's context length, and
    its own arguments can't change that). None if not before `context_length`."""
    short = len(_ids(native, " a" * (context_length + 1)))
    long = len(_ids(native, " a" * (2 * context_length + 2)))
    return short if short == long else None


def _seam(native: openvino_genai.Tokenizer, text: str) -> Seam | None:
    """Found out by trying. Most tokenizers cut texts at special tokens first; some treat what begins a text in a way of its
    own."""
    ids = _ids(native, text) if text else []
    if len(ids) != 1:
        return None
    holds = all(
        _ids(native, left + text + right) == _ids(native, left) + ids + _ids(native, right) for left, right in _AROUND_SEAMS
    )
    return Seam(text, ids[0]) if holds else None


def _stated(token: int) -> tuple[int, ...]:
    return (token,) if token >= 0 else ()
