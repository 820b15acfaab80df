"""Train a smaller model on the likeliest tokens of its teacher."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from headway.distill.answers import Answers
from headway.distill.loss import SparseCrossEntropy, Tensor
from headway.distill.spark.examples import Batch, Examples
from headway.distill.spark.llama import Llama
from headway.distill.trainer import Plan, Trainer, chosen_device, half_pays, use_threads
from headway.errors import UsageError

LEARNING_RATE = 1e-3
NEGATIVES = 4096
"""Tokens that no teacher's distribution in a batch names, drawn to stand for all of those."""
CHOSEN_SHARE = 0.1
"""Of the loss, to the token that was chosen; the rest is to the teacher's distribution."""


class SparkTrainer(Trainer):
    """A batch of its plan is so many tokens, with prompts and padding."""

    def __init__(self, student: Llama, answers: Answers, plan: Plan, facts: dict[str, Any], threads: int | None = None) -> None:
        """answers: with the teacher's likeliest tokens (known.Likeliest). Raises UsageError if there are none."""
        use_threads(threads)
        if not len(answers.prompts):
            raise UsageError("there are no answers to learn from: collect more --tokens")
        self._device = chosen_device()
        self._half = half_pays(self._device)
        self.student = student.to(self._device)
        self._answers = answers
        self._examples = Examples(answers)
        self._output = student.output.to(torch.bfloat16 if self._half else torch.float32)
        self._batches = self._examples.epoch(plan.batch, plan.seed)
        self._epoch = 0
        facts = {"answer tokens": len(answers.tokens), **facts}
        super().__init__(plan, student.trained(), len(self._batches), LEARNING_RATE, facts)

    @property
    def num_tokens(self) -> int:
        return len(self._answers.tokens)

    def _batch(self) -> Batch:
        """Every epoch has an order of its own. Epochs differ by a batch or two, since answers are put together differently: one
        with fewer begins again."""
        epoch, place = divmod(self.steps, self._steps_per_epoch)
        if epoch != self._epoch:
            self._batches = self._examples.epoch(self.plan.batch, self.plan.seed + 1_000_003 * epoch)
            self._epoch = epoch
        return self._batches[place % len(self._batches)]

    def _loss(self) -> Tensor:
        batch = self._batch()
        known = self._answers.rows(batch.places)
        ids, weights = torch.from_numpy(known["ids"].astype(np.int64)), torch.from_numpy(known["logprobs"]).float().exp()
        chosen = torch.from_numpy(self._answers.tokens[batch.places]).unsqueeze(1)
        ids = torch.cat([chosen, ids], 1).to(self._device)
        weights = weights * ((1 - CHOSEN_SHARE) / weights.sum(1, keepdim=True))
        weights = torch.cat([torch.full((len(ids), 1), CHOSEN_SHARE), weights], 1).to(self._device)
        vocabulary, ids, shift = self._subset(ids)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._half):
            states = self.student(torch.from_numpy(batch.tokens).to(self._device))
        x = states[torch.from_numpy(batch.rows), torch.from_numpy(batch.columns)].to(self._output.dtype)
        return SparseCrossEntropy.apply(x, self._output[vocabulary], ids, weights, shift)

    def _subset(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens to take the softmax over: those named and some drawn from the rest, whose logits are raised so that they count
        for all of it; the ids among them; what to raise by [subset]."""
        size = len(self._output)
        named, among = torch.unique(ids, return_inverse=True)
        is_named = torch.zeros(size, dtype=torch.bool, device=self._device)
        is_named[named] = True
        rest = torch.nonzero(~is_named).squeeze(1)
        shift = torch.zeros(len(named), device=self._device)
        if len(rest) > NEGATIVES:
            random = torch.Generator().manual_seed(self.plan.seed * 1_000_003 + self.steps)
            drawn = torch.randperm(len(rest), generator=random)[:NEGATIVES].to(self._device)
            raised = torch.full((NEGATIVES,), math.log(len(rest) / NEGATIVES), device=self._device)
            rest = rest[drawn]
        else:
            raised = torch.zeros(len(rest), device=self._device)
        return torch.cat([named, rest]), among, torch.cat([shift, raised])
