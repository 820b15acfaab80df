"""Answers cut into batches."""

from __future__ import annotations

import numpy as np
import pytest

from headway.distill.spark.examples import Examples

from .tiny import answers


def test_every_token_of_an_answer_is_foretold_at_the_one_before_it() -> None:
    made = answers(5)
    for batch in Examples(made).epoch(64, seed=1):
        for row, column, place in zip(batch.rows, batch.columns, batch.places, strict=True):
            i = made.sequence[place]
            first = int(np.flatnonzero(made.sequence == i)[0])
            whole = [*made.prompts[i].tolist(), *made.tokens[made.sequence == i].tolist()]
            at = len(made.prompts[i]) + int(place) - first
            assert whole[at] == made.tokens[place]
            assert batch.tokens[row, : column + 1].tolist() == whole[:at]


@pytest.mark.parametrize("size", [1, 40, 64, 1000])
def test_an_epoch_has_every_token_once_in_batches_of_the_size(size: int) -> None:
    made = answers(30)
    batches = Examples(made).epoch(size, seed=3)
    assert sorted(np.concatenate([b.places for b in batches]).tolist()) == list(range(len(made.tokens)))
    assert all(b.tokens.size <= size or len(b.tokens) == 1 for b in batches)


def test_the_order_follows_from_the_seed() -> None:
    examples = Examples(answers(30))
    orders = [np.concatenate([b.places for b in examples.epoch(100, seed)]).tolist() for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
