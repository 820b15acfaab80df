"""Which bytes tokens stand for, and where texts begin and end, for tokenizers of several makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.catalog.gguf_file import GgufInfo
from headway.errors import ModelError
from headway.text.tokenizer import Tokenizer
from headway.text.vocabulary import from_gguf, from_tokenizer


def info(kinds: list[int], *, model: str = "gpt2", eos: int = 1, bos: int | None = None, adds_bos: bool = False) -> GgufInfo:
    return GgufInfo(
        path=Path("m.gguf"),
        architecture="llama",
        context_length=8,
        vocab_size=len(kinds),
        block_count=None,
        head_count=None,
        head_count_kv=None,
        tokenizer_model=model,
        token_types=bytes(kinds),
        eos_ids=frozenset({eos}),
        bos_id=bos,
        adds_bos=adds_bos,
        chat_template=None,
        quantization=(),
        tensor_bytes=0,
        file_size=0,
        licence=None,
    )


def ids(*texts: bytes) -> dict[bytes, int]:
    return {text: token for token, text in enumerate(texts)}


def test_only_text_tokens_have_text() -> None:
    names = ids(b"<unk>", b"</s>", b"a", b"<tool_call>", b"[unused]")
    vocabulary = from_gguf(info([2, 3, 1, 4, 5]), names)
    assert vocabulary.token_bytes == [b"", b"", b"a", b"<tool_call>", b""]
    assert vocabulary.max_token_bytes == len(b"<tool_call>")


def test_marks_of_tool_calls_are_shown() -> None:
    names = ids(b"<s>", b"</s>", b"[TOOL_CALLS]", b"<|python_tag|>", b"[IMG]")
    shown = [b"", b"", b"[TOOL_CALLS]", b"<|python_tag|>", b""]
    assert from_gguf(info([3, 3, 3, 3, 3]), names).token_bytes == shown
    vocabulary = from_tokenizer(names, frozenset({1}), 0, False, lambda tokens: [""] * len(tokens))
    assert vocabulary.token_bytes == shown


def test_sentencepiece_tokens_are_bytes_and_spaces() -> None:
    names = ids(b"<s>", b"</s>", "▁hi".encode(), b"<0xF0>", b"<0x0a>")
    vocabulary = from_gguf(info([3, 3, 1, 6, 6], model="llama", bos=0, adds_bos=True), names)
    assert vocabulary.token_bytes == [b"", b"", b" hi", b"\xf0", b"\n"]
    assert (vocabulary.bos, vocabulary.eos, vocabulary.start_of_document) == ("<s>", "</s>", 0)


def test_control_tokens_that_end_texts_elsewhere_end_them_here() -> None:
    names = ids(b"a", b"</s>", b"<|eot_id|>", b"<|im_end|>")
    assert from_gguf(info([1, 3, 3, 1]), names).eos_ids == {1, 2}  # the last one is no control token here


@pytest.mark.parametrize(
    ("kinds", "bos", "adds_bos", "start"),
    [([3, 3, 3], 2, True, 2), ([3, 3, 3], 2, False, 0), ([1, 3, 3], 2, False, 2), ([1, 3, 3], None, False, 1)],
)
def test_where_a_document_starts(kinds: list[int], bos: int | None, adds_bos: bool, start: int) -> None:
    names = ids(b"<|endoftext|>", b"</s>", b"<s>")
    assert from_gguf(info(kinds, bos=bos, adds_bos=adds_bos), names).start_of_document == start


def test_without_types_special_tokens_are_those_that_decode_to_nothing() -> None:
    names = ids(b"a", b"<|im_end|>", b"<b>", b"[INST]")

    def shown(tokens: list[int]) -> list[str]:
        return ["<b>" if token == 2 else "" for token in tokens]

    vocabulary = from_tokenizer(names, frozenset(), None, adds_bos=False, shown_text=shown)
    assert vocabulary.token_bytes == [b"a", b"", b"<b>", b""]
    assert vocabulary.eos_ids == {1}


@pytest.mark.parametrize(("eos", "words"), [(frozenset({9}), "names 9"), (frozenset[int](), "which token ends")])
def test_ends_that_cannot_be(eos: frozenset[int], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        from_tokenizer(ids(b"a"), eos, None, adds_bos=False, shown_text=lambda tokens: [""] * len(tokens))


class FakeNative:
    """Stands for the wrapped tokenizer: one id for each letter."""

    def encode(self, text: str, add_special_tokens: bool) -> FakeNative:
        self.input_ids = self
        self.data = [Row(ord(char) - ord("a") for char in text.replace(" ", ""))]
        return self


class Row(list[int]):
    def tolist(self) -> list[int]:
        return list(self)


def test_bos_is_there_once() -> None:
    vocabulary = from_gguf(info([3, 3, 1], bos=0, adds_bos=True), ids(b"<s>", b"</s>", b"c"))
    tokenizer = Tokenizer(FakeNative(), vocabulary, None, 8)
    assert tokenizer.encode("c") == [2]
    assert tokenizer.encode_prompt("c") == [0, 2]
    assert tokenizer.encode_prompt("ac") == [0, 2]  # the template wrote it
    assert tokenizer.encode_prompt("") == [0]
