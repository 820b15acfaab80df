"""Answers on disk: whole shards or none, found again, and never mixed with others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.distill import answers as answers_module
from headway.distill.answers import Answer, AnswerStore
from headway.distill.head.accuracy import accuracy, places_with
from headway.errors import UsageError

FACTS = {"model": "m", "layers": [1, 2]}


def answer(number: int, length: int) -> Answer:
    tokens = list(range(100 * number, 100 * number + length))
    features = np.array([[t, -t] for t in tokens], np.float16)
    return Answer(number, [number, 1, 2], tokens, features)


def test_what_was_added_is_there_when_it_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "SHARD_TOKENS", 8)
    store = AnswerStore(tmp_path / "a", FACTS)
    for number, length in ((4, 5), (1, 6), (7, 3), (2, 2)):
        store.add(answer(number, length))
    assert len(list((tmp_path / "a").glob("*.npz"))) == 1, "the rest is still in memory"
    store.flush()
    again = AnswerStore(tmp_path / "a", FACTS)
    assert (again.num_tokens, again.numbers, len(again)) == (16, {1, 2, 4, 7}, 4)
    again.add(answer(9, 2))
    again.flush()
    loaded = AnswerStore(tmp_path / "a", FACTS).load()
    assert loaded.tokens.tolist() == [*range(400, 405), *range(100, 106), *range(700, 703), 200, 201, 900, 901]
    assert loaded.sequence.tolist() == [0] * 5 + [1] * 6 + [2] * 3 + [3] * 2 + [4] * 2
    places = np.array([17, 0, 5, 10, 11])
    assert np.array_equal(loaded.rows(places)[:, 0], loaded.tokens[places].astype(np.float16))


def test_an_unfinished_shard_is_not_there(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path, FACTS)
    store.add(answer(1, 5))
    store.flush()
    (tmp_path / "00002.known.npy").write_bytes(b"half")
    (tmp_path / "00002.answers.npz.part").write_bytes(b"half")
    again = AnswerStore(tmp_path, FACTS)
    assert again.num_tokens == 5
    again.add(answer(2, 6))
    again.flush()
    assert AnswerStore(tmp_path, FACTS).load().tokens.size == 11


@pytest.mark.parametrize("name", ["00001.known.npy", "00001.answers.npz"])
def test_a_damaged_shard_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    store = AnswerStore(tmp_path, FACTS)
    store.add(answer(1, 5))
    store.flush()
    (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(UsageError, match="is damaged") as refused:
        AnswerStore(tmp_path, FACTS).load()
    assert "\n" not in str(refused.value)


def test_answers_of_another_kind_are_not_mixed_in(tmp_path: Path) -> None:
    AnswerStore(tmp_path, FACTS)
    with pytest.raises(UsageError, match=r"holds answers of another kind \(model: m, now n\)"):
        AnswerStore(tmp_path, FACTS | {"model": "n"})
    (tmp_path / "answers.json").write_text("{")
    with pytest.raises(UsageError, match="another kind"):
        AnswerStore(tmp_path, FACTS)


def stored(tmp_path: Path, *lengths: int) -> AnswerStore:
    store = AnswerStore(tmp_path, FACTS)
    for number, length in enumerate(lengths):
        store.add(answer(number, length))
    store.flush()
    return store


def test_guesses_are_tried_where_enough_follows_in_the_same_answer(tmp_path: Path) -> None:
    loaded = stored(tmp_path, 5, 2, 4).load()
    assert places_with(loaded, 3).tolist() == [0, 1, 7]
    assert places_with(loaded, 1).tolist() == [0, 1, 2, 3, 5, 7, 8, 9]
    assert places_with(loaded, 11).tolist() == []


def test_accuracy_counts_guesses_that_are_right_in_a_row(tmp_path: Path) -> None:
    loaded = stored(tmp_path, 103, 3).load()

    def guess(features: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        assert np.array_equal(features[:, 0], tokens.astype(np.float16))
        guesses = tokens[:, None] + np.arange(1, 4)
        guesses[tokens % 2 == 1, 1] = -1  # a second guess wrong in half of the places: a right third one doesn't count there
        guesses[tokens % 4 == 0, 2] = -1
        return guesses

    seen = accuracy(guess, loaded, 3)
    assert seen.places == 100
    assert seen.in_a_row == (1.0, 0.5, 0.25)
    assert seen.by_guess == (1.0, 0.5, 0.5)
    assert seen.accepted == 1.75
    assert accuracy(guess, loaded, 3, most=10).places == 10


def test_accuracy_of_a_head_that_knows_nothing_is_zero(tmp_path: Path) -> None:
    seen = accuracy(lambda features, tokens: np.full((len(tokens), 3), -1), stored(tmp_path, 10).load(), 3)
    assert seen.by_guess == seen.in_a_row == (0.0, 0.0, 0.0)
