"""Train a draft head on a model's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headway.distill.answers import Answers, Halves
from headway.distill.head.accuracy import Ints, places_with
from headway.distill.head.network import Network, Tensor
from headway.distill.loss import SparseCrossEntropy
from headway.distill.trainer import Plan, Trainer, chosen_device, half_pays, use_threads
from headway.engines.graph import Ends
from headway.engines.openvino import NUM_DRAFTS
from headway.errors import UsageError

LEARNING_RATE = 2e-3
DEEPER_SHARE = 0.5
"""Of the rows, that go on to the next token ahead: it is guessed less often, and to learn it costs as much."""
LEAST_ROWS = 64
DEEPER_WEIGHT = 0.8
"""Of a token's loss over that of the one before it."""
OWN_SHARE = 0.5
"""Of the loss, to the model's own distribution; the rest is to the token that was chosen."""
LIKELIEST = 12
"""Tokens that stand for the model's distribution."""


class HeadTrainer(Trainer):
    """A batch of its plan is so many places in answers."""

    def __init__(self, answers: Answers, ends: Ends, plan: Plan, vocabulary: int, threads: int | None = None) -> None:
        """vocabulary: tokens that can be guessed, the most frequent ones. Raises UsageError if nothing can be learned from."""
        use_threads(threads)
        self._answers = answers
        self._device = chosen_device()
        self._half = half_pays(self._device)
        places = places_with(answers, 1)
        if not len(places):
            raise UsageError("there are too few answers to learn from: collect more --tokens")
        self._places = torch.from_numpy(places)
        counts = np.bincount(answers.tokens, minlength=len(ends.output))
        kept = np.sort(np.argsort(-counts, kind="stable")[:vocabulary])
        self.vocabulary = vocabulary
        self.coverage = float(counts[kept].sum() / counts.sum())
        num_layers = answers.known[0].shape[1] // ends.output.shape[1]
        self.network = Network(ends, torch.from_numpy(kept), num_layers, device=self._device, half=self._half, seed=plan.seed)
        self._tokens = torch.from_numpy(answers.tokens).to(self._device)
        self._sequence = torch.from_numpy(answers.sequence).to(self._device)
        self._index = torch.full((len(ends.output),), -1, dtype=torch.long, device=self._device)
        self._index[self.network.vocabulary] = torch.arange(len(kept), device=self._device)
        self._likeliest: Tensor = torch.zeros(0)
        self._likelihoods: Tensor = torch.zeros(0)
        self._order: Tensor = None
        self._ordered_for = -1
        facts = {"vocabulary": vocabulary, "tokens": len(answers.tokens)}
        super().__init__(plan, self.network.parameters, -(-len(places) // plan.batch), LEARNING_RATE, facts)

    @property
    def num_tokens(self) -> int:
        return len(self._tokens)

    def prepare(self, piece: int = 2048) -> Any:
        """Work out the model's own distributions."""
        n = len(self._answers.tokens)
        count = min(LIKELIEST, len(self.network.vocabulary))
        self._likeliest = torch.empty(n, count, dtype=torch.int32, device=self._device)
        self._likelihoods = torch.empty(n, count, device=self._device)
        for start in range(0, n, piece):
            end = min(n, start + piece)
            with torch.no_grad():
                features = torch.from_numpy(self._answers.rows(np.arange(start, end))).to(self._device)
                values, ids = torch.softmax(self.network.model_logits(features), -1).topk(count, -1)
                self._likelihoods[start:end], self._likeliest[start:end] = values, ids.int()
            yield end

    def guess(self, features: Halves, tokens: Ints) -> Ints:
        """As the finished head would (see accuracy.py)."""
        guesses = []
        with torch.no_grad(), self._autocast():
            state = self.network.begin(torch.from_numpy(features).to(self._device).float())
            token = torch.from_numpy(tokens).to(self._device)
            for _ in range(NUM_DRAFTS):
                state = self.network.step(state, token)
                logits = self.network.before_output(state) @ self.network.output.t()
                token = self.network.vocabulary[logits.argmax(-1)]
                guesses.append(token)
        found: Ints = torch.stack(guesses, 1).cpu().numpy()
        return found

    def _batch(self) -> Tensor:
        """Every epoch has an order of its own, which follows from its number: so a training that is taken up again sees what it
        would have seen."""
        epoch, place = divmod(self.steps, self._steps_per_epoch)
        if epoch != self._ordered_for:
            random = torch.Generator().manual_seed(self.plan.seed * 1_000_003 + epoch)
            self._order = self._places[torch.randperm(len(self._places), generator=random)]
            self._ordered_for = epoch
        return self._order[place * self.plan.batch : (place + 1) * self.plan.batch]

    def _loss(self) -> Tensor:
        places = self._batch()
        features = torch.from_numpy(self._answers.rows(places.numpy())).to(self._device)
        places = places.to(self._device)
        loss: Tensor = torch.zeros((), device=self._device)
        with self._autocast():
            state = self.network.begin(features.to(self.network.output.dtype))
            for ahead in range(NUM_DRAFTS):
                if ahead:
                    rows = max(min(LEAST_ROWS, len(places)), int(len(places) * DEEPER_SHARE))
                    places, state = places[:rows], state[:rows]
                last = len(self._tokens) - 1
                state = self.network.step(state, self._tokens[(places + ahead).clamp(max=last)])
                targets = (places + ahead + 1).clamp(max=last)
                ids = self._index[self._tokens[targets]]
                known = (places + ahead < last) & (self._sequence[targets] == self._sequence[places]) & (ids >= 0)
                if known.any():
                    loss = loss + DEEPER_WEIGHT**ahead * self._cross_entropy(state[known], ids[known], targets[known])
        return loss

    def _cross_entropy(self, state: Tensor, ids: Tensor, targets: Tensor) -> Tensor:
        chosen = torch.full((len(ids), 1), 1 - OWN_SHARE, device=self._device)
        return SparseCrossEntropy.apply(
            self.network.before_output(state),
            self.network.output,
            torch.cat([ids.unsqueeze(1), self._likeliest[targets].long()], 1),
            torch.cat([chosen, self._likelihoods[targets] * OWN_SHARE], 1),
        )

    def _autocast(self) -> Any:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._half)
