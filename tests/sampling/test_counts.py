"""Counts of tokens, as arrays that grow."""

from __future__ import annotations

import numpy as np

from headway.sampling.counts import TokenCounts


def test_prompt_tokens_count_nothing_and_output_tokens_each_time() -> None:
    seen = TokenCounts([5, 3, 5])
    generator = np.random.default_rng(1)
    output = generator.integers(0, 500, 3000).tolist()
    for token in output:
        seen.add(token)
    expected = {token: float(output.count(token)) for token in {3, 5, *output}}
    assert dict(zip(seen.ids.tolist(), seen.counts.tolist(), strict=True)) == expected


def test_nothing_has_come_at_first() -> None:
    assert len(TokenCounts().ids) == len(TokenCounts().counts) == 0
