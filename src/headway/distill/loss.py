"""Cross-entropy over a large vocabulary, cheap enough for a CPU."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any


class SparseCrossEntropy(torch.autograd.Function):  # type: ignore[misc]  # torch is not there to be type-checked
    """Mean cross-entropy of softmax(x @ output.T + shift) to distributions of which only a few tokens are given.

    The logits [n, vocabulary] are made once, and their gradient is worked out in their place while they are in the cache, down
    to x: neither they nor a copy wait for the way back.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, output: Tensor, ids: Tensor, weights: Tensor, shift: Tensor = None) -> Tensor:
        """x: [n, hidden]; output: [vocabulary, hidden], without a gradient of its own, of x's kind; ids, weights: [n, few], an
        id more than once adds up; shift: [vocabulary] or None."""
        logits = (x @ output.t()).float()
        if shift is not None:
            logits.add_(shift)
        wanted = (logits.gather(1, ids) * weights).sum(1)
        largest = logits.amax(1, keepdim=True)
        logits.sub_(largest).exp_()
        sums = logits.sum(1, keepdim=True)
        mass = weights.sum(1, keepdim=True)
        loss = (mass * (sums.log() + largest)).squeeze(1).sub(wanted).mean()
        logits.mul_(mass / sums).scatter_add_(1, ids, -weights)
        ctx.save_for_backward((logits.to(x.dtype) @ output) / len(x))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0].to(gradient.dtype), None, None, None, None
