"""GGUF files: what a good one says of itself, and one clear line for each way to be broken (M1, M3)."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.catalog.gguf_file import inspect
from headway.errors import ModelError

from . import tiny


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        inspect(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def written(tmp_path: Path, data: bytes, name: str = "m.gguf") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_a_good_file_says_what_it_is(tmp_path: Path) -> None:
    info = inspect(written(tmp_path, tiny.gguf()))
    assert (info.architecture, info.context_length, info.vocab_size, info.block_count) == ("llama", 512, 4, 2)
    assert (info.head_count, info.head_count_kv) == (9, 3)
    assert (info.eos_ids, info.bos_id, info.adds_bos) == (frozenset({1}), None, False)
    assert info.token_types == bytes([3, 3, 1, 1])
    assert info.quantization == (("Q4_1", 1),)
    assert info.tensor_bytes == 32 * 16 * 20 // 32  # Q4_1: 20 bytes for 32 weights
    assert (info.licence, info.chat_template) == ("mit", "{{ messages }}")


@pytest.mark.model
def test_the_real_model(smollm2: Path) -> None:
    info = inspect(smollm2)
    assert (info.context_length, info.vocab_size, info.block_count) == (8192, 49_152, 30)
    assert (info.head_count, info.head_count_kv, info.eos_ids, info.adds_bos) == (9, 3, frozenset({2}), False)
    assert dict(info.quantization) == {"Q4_1": 210, "F32": 61, "Q8_0": 1}
    assert info.file_size - 2_000_000 < info.tensor_bytes < info.file_size == 98_362_432


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"GGUX" + tiny.gguf()[4:], "b'GGUX'"),
        (b"FUGG" + tiny.gguf()[4:], "byte-swapped"),
        (b"<!DOCTYPE html><title>404</title>", "HTML"),
        (b"\n <html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"),
        (b"PK\x03\x04" + bytes(50), "zip"),
        (b"lmgg" + bytes(50), "GGML"),
        (struct.pack("<Q", 60) + b'{"a":{}}', "safetensors"),
        (b"G", "b'G'"),
    ],
)
def test_what_is_no_gguf_is_named(tmp_path: Path, data: bytes, words: str) -> None:  # M1
    assert words in refusal(written(tmp_path, data))


def test_a_folder_is_no_gguf(tmp_path: Path) -> None:  # M1
    (tmp_path / "dir.gguf").mkdir()
    assert "a folder" in refusal(tmp_path / "dir.gguf")


def test_a_missing_file_is_named(tmp_path: Path) -> None:  # M1
    assert "there is no file" in refusal(tmp_path / "nowhere.gguf")
    assert "there is no file" in refusal(tmp_path / "half\0name.gguf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "not a regular file" in refusal(tmp_path / "pipe.gguf")


@pytest.mark.parametrize(("version", "words"), [(99, "version 99"), (1, "version 1"), (3 << 24, "big-endian")])
def test_other_versions_are_refused(tmp_path: Path, version: int, words: str) -> None:
    assert words in refusal(written(tmp_path, tiny.gguf(version=version)))


@pytest.mark.parametrize("counts", [(2**60, 2**60), (2**64 - 1, 1), (1, 2**40), (10**6, 1), (1, 60_000)])
def test_absurd_counts_are_refused(tmp_path: Path, counts: tuple[int, int]) -> None:
    message = refusal(written(tmp_path, tiny.gguf(counts=counts)))
    assert "claims" in message or "cut short" in message


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    whole = tiny.gguf(data=320)
    for length in range(len(whole)):
        refusal(written(tmp_path, whole[:length]))
    inspect(written(tmp_path, whole))


def test_cut_data_says_how_much_is_there(tmp_path: Path) -> None:
    assert "cut short" in refusal(written(tmp_path, tiny.gguf(data=100)))


@pytest.mark.parametrize(
    ("key", "pair"),
    [
        ("general.architecture", None),
        ("general.architecture", (tiny.U32, 3)),
        ("llama.context_length", None),
        ("llama.context_length", (tiny.U32, 0)),
        ("llama.context_length", (tiny.STRING, "many")),
        ("llama.context_length", (tiny.BOOL, True)),
        ("tokenizer.ggml.model", None),
        ("tokenizer.ggml.tokens", None),
        ("tokenizer.ggml.tokens", (tiny.ARRAY, (tiny.STRING, []))),
        ("tokenizer.ggml.token_type", (tiny.ARRAY, (tiny.I32, [1]))),
        ("tokenizer.ggml.token_type", (tiny.ARRAY, (tiny.F32, [1.0] * 4))),
        ("tokenizer.ggml.eos_token_id", None),
        ("tokenizer.ggml.eos_token_id", (tiny.U32, 4294967295)),
        ("tokenizer.ggml.eos_token_id", (tiny.I32, -1)),
        ("tokenizer.ggml.eos_token_id", (tiny.F32, 1.0)),
        ("tokenizer.ggml.eot_token_id", (tiny.U32, 4)),
        ("tokenizer.ggml.bos_token_id", (tiny.U32, 4)),
        ("general.alignment", (tiny.U32, 7)),
        ("general.alignment", (tiny.U32, 0)),
        ("general.type", (tiny.STRING, "adapter")),
    ],
)
def test_the_key_at_fault_is_named(tmp_path: Path, key: str, pair: tuple[int, Any] | None) -> None:  # M3
    assert key in refusal(written(tmp_path, tiny.gguf({key: pair})))


def test_no_chat_template_is_no_error(tmp_path: Path) -> None:  # M3
    assert inspect(written(tmp_path, tiny.gguf({"tokenizer.chat_template": None}))).chat_template is None


def test_bos_is_added_as_stated_or_as_the_tokenizer_is_known_for(tmp_path: Path) -> None:
    bos: dict[str, tuple[int, Any] | None] = {"tokenizer.ggml.bos_token_id": (tiny.U32, 0)}
    spm: dict[str, tuple[int, Any] | None] = {"tokenizer.ggml.model": (tiny.STRING, "llama")}
    no: dict[str, tuple[int, Any] | None] = {"tokenizer.ggml.add_bos_token": (tiny.BOOL, False)}
    yes: dict[str, tuple[int, Any] | None] = {"tokenizer.ggml.add_bos_token": (tiny.BOOL, True)}
    cases = [(bos, False), (bos | spm, True), (spm, False), (bos | spm | no, False), (bos | yes, True)]
    for changes, expected in cases:
        assert inspect(written(tmp_path, tiny.gguf(changes))).adds_bos is expected


def test_one_part_of_several_is_refused(tmp_path: Path) -> None:
    data = tiny.gguf({"split.count": (tiny.U32, 2)})
    assert "one of 2 parts" in refusal(written(tmp_path, data, "model-00001-of-00002.gguf"))


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ([], "no tensors"),
        ([tiny.tensor("w", [32], 99, 0)], "unknown type 99"),
        ([tiny.tensor("w", [31], 3, 0)], "don't fill"),
        ([tiny.tensor("w", [32] * 5, 3, 0)], "5 dimensions"),
        ([tiny.tensor("w", [2**63, 2**63], 0, 0)], "cut short"),
        ([tiny.tensor("w", [32], 3, 2**64 - 1)], "cut short"),
    ],
)
def test_tensors_that_cannot_be(tmp_path: Path, tensors: list[bytes], words: str) -> None:
    assert words in refusal(written(tmp_path, tiny.gguf(tensors=tensors)))


def test_a_key_twice_is_refused(tmp_path: Path) -> None:
    data = tiny.gguf().replace(b"llama.attention.head_count_kv", b"tokenizer.ggml.eos_token_id!!")
    twice = data.replace(b"general.architecture", b"llama.context_length")
    assert "twice" in refusal(written(tmp_path, twice))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_damage_anywhere_is_one_line_or_harmless(tmp_path: Path, seed: int) -> None:
    noise = random.Random(seed)
    data = bytearray(tiny.gguf())
    for _ in range(noise.randint(1, 8)):
        data[noise.randrange(4, len(data) - 4000)] = noise.choice([0, 1, 9, 0x7F, 0x80, 0xFF])
    try:
        inspect(written(tmp_path, bytes(data)))
    except ModelError as error:
        assert "\n" not in str(error)
