"""How near a model is to its teacher, and how well it foretells text."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headway.distill.answers import Answers
from headway.distill.loss import Tensor
from headway.distill.spark.examples import Examples
from headway.distill.spark.llama import Llama
from headway.distill.spark.vocabulary import OutputVocabulary

BATCH_TOKENS = 4096
WINDOW_TOKENS, MOST_WINDOWS = 512, 32
ROWS = 1024
"""Of logits at a time: over a vocabulary of 49,152 they take 200 MB."""


@dataclass(frozen=True, slots=True)
class Quality:
    """agreement: how often its likeliest next token is the one that the teacher chose, greedily. perplexity: of text."""

    agreement: float
    perplexity: float


def quality(model: Llama, held_out: Answers, text: Sequence[int], vocabulary: OutputVocabulary | None = None) -> Quality:
    """held_out: the teacher's greedy answers to prompts that nobody learned from. vocabulary: that the model speaks with, if
    not with the teacher's; what is counted are still the teacher's tokens."""
    if vocabulary is None:
        return Quality(agreement(model, held_out), perplexity(model, text))
    spelt = vocabulary.spell(text)
    return Quality(agreement(model, *vocabulary.rewritten(held_out)), perplexity(model, spelt) ** (len(spelt) / len(text)))


def agreement(model: Llama, held_out: Answers, of: NDArray[np.int64] | None = None, most: int | None = None) -> float:
    """of: which token each is a part of; a token is right if all its parts are. most: tries no more answers than that."""
    of = np.arange(len(held_out.tokens)) if of is None else of
    right, tried = np.ones(of.max(initial=0) + 1, bool), np.zeros(of.max(initial=0) + 1, bool)
    examples = Examples(held_out)
    batches = examples.in_order(BATCH_TOKENS) if most is None else [examples.batch(range(min(most, len(examples))))]
    for batch in batches:
        x = _states(model, batch.tokens)[torch.from_numpy(batch.rows), torch.from_numpy(batch.columns)]
        likeliest = torch.cat([_logits(model, part).argmax(-1).cpu() for part in x.split(ROWS)]).numpy()
        np.logical_and.at(right, of[batch.places], likeliest == held_out.tokens[batch.places])
        tried[of[batch.places]] = True
    return float(right[tried].mean()) if tried.any() else 0.0


def perplexity(model: Llama, text: Sequence[int]) -> float:
    """exp of the mean -log p of each token but the first of a window of 512, given those before it in there."""
    losses = list(_losses(model, windows(text)))
    return math.exp(sum(float(part.sum()) for part in losses) / sum(len(part) for part in losses))


def answer(model: Llama, prompt: Sequence[int], most: int, ends: Collection[int], said: OutputVocabulary | None) -> list[int]:
    """What it says, greedily, without the token that ends it. Everything is computed again for each token: for short ones."""
    allowed = None if said is None else torch.from_numpy(said.tokens)
    output: list[int] = []
    while len(output) < most:
        logits = _logits(model, _states(model, np.array([[*prompt, *output]], np.int64))[0, -1:])[0].cpu()
        token = int(logits.argmax()) if allowed is None else int(allowed[logits[allowed].argmax()])
        if token in ends:
            break
        output.append(token)
    return output


def windows(text: Sequence[int]) -> NDArray[np.int64]:
    """The first windows of a text [windows, WINDOW_TOKENS]; what is left over is dropped, but a short text is one window."""
    length = min(WINDOW_TOKENS, len(text))
    count = min(MOST_WINDOWS, len(text) // length)
    return np.array(text[: count * length], np.int64).reshape(count, length)


def _losses(model: Llama, tokens: NDArray[np.int64]) -> Iterator[Tensor]:
    for part in np.array_split(tokens, max(1, tokens.size // BATCH_TOKENS)):
        states, wanted = _states(model, part)[:, :-1].flatten(0, 1), torch.from_numpy(part[:, 1:]).flatten()
        for x, truth in zip(states.split(ROWS), wanted.split(ROWS), strict=True):
            yield torch.nn.functional.cross_entropy(_logits(model, x), truth.to(x.device), reduction="none")


def _states(model: Llama, tokens: NDArray[np.int64]) -> Tensor:
    with torch.no_grad():
        return model(torch.from_numpy(tokens).to(model.output.device))


def _logits(model: Llama, states: Tensor) -> Tensor:
    return states @ model.output.t()
