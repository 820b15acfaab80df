"""The file of a draft head: what comes back is what was written, and what isn't a whole head of this model is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from headway.engines.draft_head import DraftHead, quantized
from headway.errors import ModelError

from .small_head import HIDDEN, VOCABULARY, normal, small_head

Change = Callable[[dict[str, Any], dict[str, str]], None]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "head.safetensors"
    small_head().save(path)
    return path


def changed(path: Path, change: Change) -> Path:
    with safe_open(path, framework="numpy") as file:
        metadata, tensors = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, metadata)
    save_file(tensors, path, metadata)
    return path


def test_it_comes_back_as_it_was_but_for_eight_bits_in_the_matrices(saved: Path) -> None:
    head, back = small_head(), DraftHead.load(saved)
    assert (back.layers, back.card, back.hidden) == (head.layers, head.card, HIDDEN)
    assert np.array_equal(back.vocabulary, head.vocabulary)
    for name in ("feature_gain", "state_gain", "embedding_gain", "output_gain"):
        assert np.array_equal(getattr(back, name), getattr(head, name))
    pairs = [(back.fuse, head.fuse), (back.join, head.join)]
    for now, then in zip(back.blocks, head.blocks, strict=True):
        assert np.array_equal(now.gain, then.gain)
        pairs += [(now.gate, then.gate), (now.up, then.up), (now.down, then.down)]
    for now, then in pairs:
        assert np.all(np.abs(now - then) <= 0.51 * np.abs(then).max(1, keepdims=True) / 127)


def test_saving_it_again_changes_nothing(saved: Path, tmp_path: Path) -> None:
    DraftHead.load(saved).save(tmp_path / "again.safetensors")
    first, second = DraftHead.load(saved), DraftHead.load(tmp_path / "again.safetensors")
    assert np.allclose(first.fuse, second.fuse, rtol=0, atol=1e-6)
    assert np.allclose(first.blocks[1].down, second.blocks[1].down, rtol=0, atol=1e-6)


def test_a_row_of_zeros_stays_one() -> None:
    values, scale = quantized(np.zeros((2, 3), np.float32))
    assert not values.any()
    assert (scale > 0).all()


def drop(name: str) -> Change:
    def change(tensors: dict[str, Any], metadata: dict[str, str]) -> None:
        del tensors[name]

    return change


def put(name: str, value: Any) -> Change:
    return lambda tensors, metadata: tensors.update({name: value})


def say(name: str, value: Any) -> Change:
    return lambda tensors, metadata: metadata.update({name: json.dumps(value)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (drop("join"), "is damaged: it has no 'join'"),
        (drop("blocks.1.up"), "is damaged: it has no 'blocks.1.up'"),
        (drop("blocks.0.down.scale"), "it has no 'blocks.0.down.scale'"),
        (put("state_gain", np.ones(3, np.float32)), "state_gain has the shape (3,) instead of (64,)"),
        (put("output_gain", np.ones((HIDDEN, 2), np.float32)), "output_gain has the shape (64, 2) instead of (64,)"),
        (put("blocks.0.gate", np.ones(3, np.int8)), "is damaged"),
        (put("feature_gain", np.full(2 * HIDDEN, np.nan, np.float32)), "feature_gain holds values that are no numbers"),
        (put("vocabulary", np.zeros(0, np.int32)), "its vocabulary is no list of token ids"),
        (put("vocabulary", np.array([-1, 4], np.int32)), "its vocabulary is no list of token ids"),
        (say("layers", [0, -1]), "it reads the layers [0, -1]"),
        (say("layers", 7), "is damaged"),
        (lambda tensors, metadata: metadata.update({"layers": "["}), "is damaged"),
        (lambda tensors, metadata: metadata.pop("card") and None, "it has no 'card'"),
        (say("format", "headway-draft-head-0"), "is not a draft head of this version of headway"),
        (lambda tensors, metadata: metadata.clear(), "is not a draft head of this version of headway"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(saved: Path, change: Change, says: str) -> None:
    with pytest.raises(ModelError) as refused:
        DraftHead.load(changed(saved, change))
    assert says in str(refused.value)
    assert str(saved) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"\xff" * 64])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "head.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="can't be read"):
        DraftHead.load(path)


def test_a_file_cut_short_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(ModelError, match="can't be read"):
        DraftHead.load(saved)


def test_a_head_of_another_model_is_refused() -> None:
    head, path = small_head(), Path("other.safetensors")
    head.check_fits(path, HIDDEN, VOCABULARY)
    with pytest.raises(
        ModelError, match=r"other.safetensors belongs to another model: .* hidden size of 64, this model has 576"
    ):
        head.check_fits(path, 576, VOCABULARY)
    with pytest.raises(ModelError, match="it guesses token 299, this model has 299"):
        replace(head, vocabulary=np.array([7, 299], np.int32)).check_fits(path, HIDDEN, 299)


def test_gains_keep_their_precision(tmp_path: Path) -> None:
    exact = normal(np.random.default_rng(3), HIDDEN)
    replace(small_head(), output_gain=exact).save(tmp_path / "head")
    assert np.array_equal(DraftHead.load(tmp_path / "head").output_gain, exact)
