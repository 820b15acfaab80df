"""The real model's tokenizer: bytes in, the same bytes out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headway.errors import ModelError, RequestError
from headway.text.stream import TextStream
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Seam, Tokenizer

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def tokenizer(smollm2: Path) -> Tokenizer:
    return Tokenizer.load(smollm2)


@pytest.mark.parametrize("text", ["", " x", "x", "\n\n   hi", "a\0b", "🫠龜é👩‍👩‍👧‍👦𝔘ż", "１２３ ﬁ e\u0301", "word " * 1000])
def test_text_comes_back_as_it_went_in(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    stream = TextStream(tokenizer.token_bytes)
    assert "".join([*map(stream.push, ids), stream.flush()]) == text
    assert len(ids) * tokenizer.max_token_bytes >= len(text.encode())


def test_facts(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocab_size == len(tokenizer.token_bytes) == 49_152
    assert tokenizer.eos_ids == {0, 2}  # <|endoftext|> ends documents, <|im_end|> turns
    assert tokenizer.start_of_document == 0
    assert (tokenizer.bos, tokenizer.eos) == ("<|im_start|>", "<|im_end|>")


def test_special_tokens_are_read_but_never_shown(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("<|im_start|>user<|im_end|>")[::2] == [1, 2]
    assert [tokenizer.token_bytes[token] for token in range(17)] == [b""] * 17


def test_a_text_can_be_cut_at_every_seam(tokenizer: Tokenizer) -> None:
    assert tokenizer.seam == Seam("<|im_end|>", 2)
    for turns in (["a", "  b", "\n\nc", "1", "2", "é", "\u0301", "<|", "im_end|>", ""], ["word"] * 10):
        text = "<|im_end|>".join(turns)
        for at in range(1, len(turns)):
            left = "<|im_end|>".join(turns[:at]) + "<|im_end|>"
            assert tokenizer.encode(left) + tokenizer.encode(text[len(left) :]) == tokenizer.encode(text)


def test_a_prompt_is_never_empty_and_gets_no_bos_from_this_model(tokenizer: Tokenizer) -> None:  # C7
    assert tokenizer.encode_prompt("") == [0]
    assert tokenizer.encode_prompt("hi") == tokenizer.encode("hi")


@pytest.mark.parametrize("text", ["x \ud83d", "\ude00 y"])
def test_half_a_character_is_a_bad_request(tokenizer: Tokenizer, text: str) -> None:  # I1
    with pytest.raises(RequestError) as caught:
        tokenizer.encode(text)
    assert caught.value.status == 400
    assert caught.value.message.isascii()


def test_a_text_longer_than_the_context_is_never_cut_in_silence(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("word " * 8000)) == 8001
    with pytest.raises(RequestError) as caught:
        tokenizer.encode("word " * 9000)
    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")


def test_threads_may_encode_at_once(tokenizer: Tokenizer) -> None:
    texts = [f"text {i} " * (i % 17 + 1) for i in range(300)]
    alone = [tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(tokenizer.encode, texts)) == alone


def test_the_models_own_template(tokenizer: Tokenizer) -> None:
    assert tokenizer.chat_template is not None
    template = ChatTemplate(tokenizer.chat_template, bos=tokenizer.bos, eos=tokenizer.eos)
    prompt = template.render([{"role": "user", "content": "hi"}])
    assert prompt.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.encode_prompt(prompt)[0] == 1


def test_a_link_in_a_folder_of_other_letters(smollm2: Path, tmp_path: Path, tokenizer: Tokenizer) -> None:  # M5
    folder = tmp_path / "модель ü 模型 🦙"
    folder.mkdir()
    (folder / "смол.gguf").symlink_to(smollm2)
    assert Tokenizer.load(folder / "смол.gguf").encode("hi") == tokenizer.encode("hi")


def test_what_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"<html>")
    with pytest.raises(ModelError, match="HTML"):
        Tokenizer.load(path)
