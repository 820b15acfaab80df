"""The part of a vocabulary that a spark speaks with."""

from __future__ import annotations

import numpy as np
import pytest

from headway.distill.answers import Answers
from headway.distill.known import Likeliest
from headway.distill.spark.vocabulary import OutputVocabulary, choose
from headway.errors import UsageError

TOKENS = [b"a", b"b", b"c", b"ab", b"abc", b"ca", b"", b"\xf0\x9f"]
END = 6


def known(*rows: dict[int, float]) -> np.ndarray:
    out = np.zeros(len(rows), Likeliest(3).dtype)
    out["logprobs"] = -np.inf
    for entry, row in zip(out, rows, strict=True):
        for place, (token, likelihood) in enumerate(row.items()):
            entry["ids"][place], entry["logprobs"][place] = token, np.log(likelihood)
    return out


def answers() -> Answers:
    rows = known({4: 0.5, 3: 0.25, 5: 0.25}, {END: 1.0}, {5: 0.9, 0: 0.1}, {END: 1.0})
    return Answers(np.array([4, END, 5, END]), np.array([0, 0, 1, 1]), [rows[:1], rows[1:]], [np.array([4]), np.array([5])])


def spoken(*extra: int) -> OutputVocabulary:
    return OutputVocabulary(np.array(sorted({0, 1, 2, END, 7, *extra})), TOKENS)


def test_the_longest_pieces_from_the_left() -> None:
    assert spoken().spell([4, 3, 5]) == [0, 1, 2, 0, 1, 2, 0]
    assert spoken(3).spell([4, 3, END, 7]) == [3, 2, 3, END, 7]
    for vocabulary in (spoken(), spoken(3), spoken(3, 5)):
        for token, text in enumerate(TOKENS):
            assert b"".join(TOKENS[i] for i in vocabulary.spelt(token)) == text
            assert set(vocabulary.spelt(token)) <= set(vocabulary.tokens.tolist())


def test_answers_are_written_anew_and_likelihood_goes_to_how_a_spelling_begins() -> None:
    new, of = spoken(3).rewritten(answers())
    assert new.tokens.tolist() == [3, 2, END, 2, 0, END]
    assert of.tolist() == [0, 0, 1, 2, 2, 3]
    assert new.sequence.tolist() == [0, 0, 0, 1, 1, 1]
    assert [p.tolist() for p in new.prompts] == [[4], [5]]
    (rows,) = new.known

    def likelihoods(place: int) -> dict[int, float]:
        sums: dict[int, float] = {}
        for token, logprob in zip(rows["ids"][place].tolist(), rows["logprobs"][place].tolist(), strict=True):
            if logprob > -np.inf:
                sums[token] = sums.get(token, 0) + np.exp(logprob)
        return sums

    assert likelihoods(0) == pytest.approx({3: 0.75, 2: 0.25}, abs=1e-3)
    assert likelihoods(1) == {2: 1.0}, "the rest of a spelling is certain"
    assert likelihoods(3) == pytest.approx({2: 0.9, 0: 0.1}, abs=1e-3)
    assert likelihoods(5) == {END: 1.0}


def test_what_the_teacher_says_most_and_what_it_takes_to_spell_the_rest() -> None:
    assert choose(answers(), TOKENS, [], 6).tokens.tolist() == [0, 1, 2, 5, END, 7]
    assert choose(answers(), TOKENS, [3], 6).tokens.tolist() == [0, 1, 2, 3, END, 7]
    with pytest.raises(UsageError, match="--vocabulary must be at least 5 for this model, not 4"):
        choose(answers(), TOKENS, [], 4)
