"""Which layers a smaller model keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from headway.distill.answers import Answers
from headway.distill.loss import Tensor
from headway.distill.spark.examples import Examples
from headway.distill.spark.llama import Llama
from headway.distill.trainer import half_pays

TRIED_TOKENS = 512
"""Of answers and their prompts, on which layers are tried."""


@dataclass(frozen=True, slots=True)
class Choice:
    """how: in a word. kept: layers, in order. loss: of the model with these layers alone, untrained."""

    how: str
    kept: tuple[int, ...]
    loss: float


def candidates(teacher: Llama, answers: Answers, count: int, tick: Callable[[float], None]) -> list[Choice]:
    """Ways to keep `count` layers, each with its loss: cross-entropy to the tokens that the teacher chose. tick: is told how
    much of the work is done, from 0 to 1.

    evenly: as far from each other as can be, the first and the last among them. influence: those which turn the residual
    stream most (block influence, 1 - cos of what goes in and what comes out; ShortGPT, arXiv 2403.03853). one by one: the layer
    is dropped whose loss is felt least, then the next one (as in Shortened LLaMA, arXiv 2402.02834, but measured again after
    each).
    """
    trial = _Trial(teacher, answers)
    ways: dict[str, Callable[[], list[int]]] = {
        "evenly": lambda: evenly(teacher.num_layers, count),
        "influence": lambda: sorted(np.argsort(-np.array(trial.influence()), kind="stable")[:count].tolist()),
        "one by one": lambda: trial.one_by_one(count, tick),
    }
    chosen = {how: way() for how, way in ways.items()}
    return [Choice(how, tuple(kept), trial.loss(kept)) for how, kept in chosen.items()]


def evenly(layers: int, count: int) -> list[int]:
    if count == 1:
        return [0]
    return [round(i * (layers - 1) / (count - 1)) for i in range(count)]


class _Trial:
    """Layers run one at a time on a few answers."""

    def __init__(self, teacher: Llama, answers: Answers) -> None:
        examples = Examples(answers)
        short = np.flatnonzero(examples.lengths <= TRIED_TOKENS // 8)
        numbers: list[int] = []
        longest = 0
        for i in short.tolist() or [int(np.argmin(examples.lengths))]:
            longest = max(longest, int(examples.lengths[i]))
            if longest * (len(numbers) + 1) > TRIED_TOKENS and numbers:
                break
            numbers.append(i)
        batch = examples.batch(numbers)
        self._teacher = teacher
        device = teacher.output.device
        self._kind = torch.bfloat16 if half_pays(device) else torch.float32
        self._device = device.type
        self._output = teacher.output.to(self._kind)
        self._tokens = torch.from_numpy(batch.tokens).to(device)
        self._rows, self._columns = torch.from_numpy(batch.rows), torch.from_numpy(batch.columns)
        self._wanted = torch.from_numpy(answers.tokens[batch.places]).to(device)
        with torch.no_grad():
            self._start = teacher.body.embed_tokens(self._tokens)
            places = torch.arange(self._tokens.shape[1], device=self._tokens.device).unsqueeze(0)
            self._rotary = teacher.body.rotary_emb(self._start, places)

    def influence(self) -> list[float]:
        found, x = [], self._start
        for layer in range(self._teacher.num_layers):
            y = self._through(x, layer)
            found.append(float(1 - torch.nn.functional.cosine_similarity(x, y, dim=-1).mean()))
            x = y
        return found

    def loss(self, kept: list[int]) -> float:
        x = self._start
        for layer in kept:
            x = self._through(x, layer)
        return self._end(x)

    def one_by_one(self, count: int, tick: Callable[[float], None]) -> list[int]:
        """While there are far too many, two at a time: the best two rounds apart are mostly the best two of one round."""
        kept = list(range(self._teacher.num_layers))
        whole = len(kept) ** 3 - count**3
        while len(kept) > count:
            tick(1 - (len(kept) ** 3 - count**3) / whole)
            losses, x = [], self._start  # x: after the layers before the one that is left out
            for place, layer in enumerate(kept):
                y = x
                for other in kept[place + 1 :]:
                    y = self._through(y, other)
                losses.append(self._end(y))
                x = self._through(x, layer)
            drop = 2 if len(kept) > 2 * count else 1
            for place in sorted(np.argsort(losses, kind="stable")[:drop].tolist(), reverse=True):
                del kept[place]
        return kept

    def _through(self, x: Tensor, layer: int) -> Tensor:
        with torch.no_grad(), torch.autocast(self._device, self._kind, enabled=self._kind == torch.bfloat16):
            return self._teacher.body.layers[layer](x, position_embeddings=self._rotary)

    def _end(self, x: Tensor) -> float:
        with torch.no_grad():
            states = self._teacher.body.norm(x)[self._rows, self._columns]
            logits = states.to(self._kind) @ self._output.t()
            return float(torch.nn.functional.cross_entropy(logits.float(), self._wanted))
