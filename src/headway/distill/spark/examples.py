"""Answers with their prompts, cut into batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.distill.answers import Answers

WINDOW = 256
"""Answers among which those of like length are put together: more would waste less padding, but mix less."""


@dataclass(frozen=True, slots=True)
class Batch:
    """tokens: [rows, length], 0 behind each end. rows, columns: where in it an answer's token is foretold [n]. places: those
    tokens in the answers [n]."""

    tokens: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    places: NDArray[np.int64]


class Examples:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        begins = np.flatnonzero(np.diff(answers.sequence, prepend=-1))
        self._begins = begins
        self._ends = np.append(begins[1:], len(answers.tokens))
        prompts = np.array([len(prompt) for prompt in answers.prompts])
        self.lengths: NDArray[np.int64] = prompts + (self._ends - self._begins) - 1  # the last token foretells nothing

    def __len__(self) -> int:
        return len(self.lengths)

    def epoch(self, tokens: int, seed: int) -> list[Batch]:
        """All answers once, in an order that follows from the seed; `tokens` at most a batch, padding counted, but one answer
        at least."""
        random = np.random.default_rng(seed)
        order = random.permutation(len(self))
        groups: list[Sequence[int]] = []
        for start in range(0, len(order), WINDOW):
            window = order[start : start + WINDOW]
            groups += self._cut(window[np.argsort(self.lengths[window], kind="stable")], tokens)
        return [self.batch(groups[i]) for i in random.permutation(len(groups))]

    def in_order(self, tokens: int) -> list[Batch]:
        """All answers once, the short ones first."""
        return [self.batch(group) for group in self._cut(np.argsort(self.lengths, kind="stable"), tokens)]

    def batch(self, numbers: Sequence[int]) -> Batch:
        width = int(self.lengths[list(numbers)].max())
        tokens = np.zeros((len(numbers), width), np.int64)
        rows, columns, places = [], [], []
        for row, i in enumerate(numbers):
            prompt, own = self._answers.prompts[i], np.arange(self._begins[i], self._ends[i])
            tokens[row, : len(prompt)] = prompt
            tokens[row, len(prompt) : self.lengths[i]] = self._answers.tokens[own[:-1]]
            rows.append(np.full(len(own), row))
            columns.append(len(prompt) - 1 + np.arange(len(own)))
            places.append(own)
        return Batch(tokens, np.concatenate(rows), np.concatenate(columns), np.concatenate(places))

    def _cut(self, numbers: NDArray[np.int64], tokens: int) -> list[Sequence[int]]:
        groups: list[list[int]] = []
        for i in numbers.tolist():
            if groups and self.lengths[i] * (len(groups[-1]) + 1) <= tokens:  # the numbers come by length
                groups[-1].append(i)
            else:
                groups.append([i])
        return list(groups)
