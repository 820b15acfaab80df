"""Train a draft head on a model's answers."""

from __future__ import annotations

import io
import math
import pickle
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headway.distill.answers import Answers, Halves
from headway.distill.head.accuracy import Ints, places_with
from headway.distill.head.network import Network, Tensor
from headway.distill.loss import SparseCrossEntropy
from headway.distill.whole_file import write_whole
from headway.engines.graph import Ends
from headway.engines.openvino import NUM_DRAFTS
from headway.errors import UsageError

LEARNING_RATE, LAST_RATE = 2e-3, 0.02
"""The second as a share of the first, on top of the cosine."""
BETAS, DECAY, LARGEST_GRADIENT = (0.9, 0.95), 0.05, 1.0
WARM_UP = 50
"""Steps."""
DEEPER_SHARE = 0.5
"""Of the rows, that go on to the next token ahead: it is guessed less often, and to learn it costs as much."""
LEAST_ROWS = 64
DEEPER_WEIGHT = 0.8
"""Of a token's loss over that of the one before it."""
OWN_SHARE = 0.5
"""Of the loss, to the model's own distribution; the rest is to the token that was chosen."""
LIKELIEST = 12
"""Tokens that stand for the model's distribution."""
SMOOTH = 0.03
"""Weight of the newest step in the loss that is shown."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Train for so many epochs, or minutes. vocabulary: tokens that can be guessed, the most frequent ones."""

    vocabulary: int
    epochs: float | None = None
    minutes: float | None = None
    batch: int = 512
    seed: int = 0


class Trainer:
    """One step after the other; `loss` is the smoothed one. What `restore` brings back goes on as if never stopped."""

    def __init__(self, answers: Answers, ends: Ends, plan: Plan, threads: int | None = None) -> None:
        """Raises UsageError if there is nothing to learn from."""
        if threads:
            torch.set_num_threads(threads)
        self.plan = plan
        self.steps = 0
        self.seconds = 0.0
        self.loss = math.nan
        self._answers = answers
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._half = self._device.type == "cuda" or _is_bf16_quick()
        places = places_with(answers, 1)
        if not len(places):
            raise UsageError("there are too few answers to learn from: collect more --tokens")
        self._places = torch.from_numpy(places)
        counts = np.bincount(answers.tokens, minlength=len(ends.output))
        kept = np.sort(np.argsort(-counts, kind="stable")[: plan.vocabulary])
        self.coverage = float(counts[kept].sum() / counts.sum())
        num_layers = answers.features[0].shape[1] // ends.output.shape[1]
        self.network = Network(ends, torch.from_numpy(kept), num_layers, device=self._device, half=self._half, seed=plan.seed)
        self._tokens = torch.from_numpy(answers.tokens).to(self._device)
        self._sequence = torch.from_numpy(answers.sequence).to(self._device)
        self._index = torch.full((len(ends.output),), -1, dtype=torch.long, device=self._device)
        self._index[self.network.vocabulary] = torch.arange(len(kept), device=self._device)
        self._likeliest: Tensor = torch.zeros(0)
        self._likelihoods: Tensor = torch.zeros(0)
        self._parameters = list(self.network.parameters.values())
        self._optimizer = torch.optim.AdamW(self._parameters, lr=LEARNING_RATE, betas=BETAS, weight_decay=DECAY)
        self._order: Tensor = None
        self._ordered_for = -1

    @property
    def num_tokens(self) -> int:
        return len(self._tokens)

    @property
    def device(self) -> str:
        return str(self._device)

    @property
    def epoch(self) -> float:
        """How many times the answers were gone through."""
        return self.steps / self._steps_per_epoch

    @property
    def progress(self) -> float:
        """From 0 to 1 at the end."""
        if self.plan.epochs is not None:
            return min(1.0, self.steps / math.ceil(self.plan.epochs * self._steps_per_epoch))
        assert self.plan.minutes is not None
        return min(1.0, self.seconds / (60 * self.plan.minutes))

    def prepare(self, piece: int = 2048) -> Any:
        """Work out the model's own distributions. A generator of how many tokens are done, to be run to its end first."""
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

    def step(self) -> float:
        """Learn from the next batch; returns its loss."""
        begun = time.perf_counter()
        rate = min(1.0, (self.steps + 1) / WARM_UP) * (0.5 * (1 + math.cos(math.pi * self.progress)) + LAST_RATE)
        for group in self._optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate
        loss = self._loss(self._batch())
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, LARGEST_GRADIENT)
        self._optimizer.step()
        self.steps += 1
        value = float(loss.detach())
        self.loss = value if self.steps == 1 else (1 - SMOOTH) * self.loss + SMOOTH * value
        self.seconds += time.perf_counter() - begun
        return value

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

    def save(self, path: Path) -> None:
        """Raises OSError."""
        state = {
            "plan": asdict(self.plan),
            "tokens": len(self._tokens),
            "steps": self.steps,
            "seconds": self.seconds,
            "loss": self.loss,
            "parameters": {name: p.detach() for name, p in self.network.parameters.items()},
            "optimizer": self._optimizer.state_dict(),
        }
        buffer = io.BytesIO()  # torch's own writer has other errors for a full disk
        torch.save(state, buffer)
        write_whole(path, lambda file: file.write(buffer.getbuffer()))

    def restore(self, path: Path) -> None:
        """Raises UsageError if the checkpoint is damaged, or of another training."""
        try:
            state = torch.load(path, map_location=self._device, weights_only=True)
            known, tokens = state["plan"], state["tokens"]
        except (OSError, RuntimeError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UsageError(f"{path} can't be read ({reason}): delete it to train anew") from None
        now = {**asdict(self.plan), "tokens": len(self._tokens)}
        for name, value in {**known, "tokens": tokens}.items():
            if now.get(name) != value:
                hint = "go on with what it was begun with, or delete the file to train anew"
                raise UsageError(f"{path} is of a training with {name} = {value}, not {now.get(name)}: {hint}")
        with torch.no_grad():
            for name, parameter in self.network.parameters.items():
                parameter.copy_(state["parameters"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self.steps, self.seconds, self.loss = state["steps"], state["seconds"], state["loss"]

    @property
    def _steps_per_epoch(self) -> int:
        return -(-len(self._places) // self.plan.batch)

    def _batch(self) -> Tensor:
        """Every epoch has an order of its own, which follows from its number: so a training that is taken up again sees what it
        would have seen."""
        epoch, place = divmod(self.steps, self._steps_per_epoch)
        if epoch != self._ordered_for:
            random = torch.Generator().manual_seed(self.plan.seed * 1_000_003 + epoch)
            self._order = self._places[torch.randperm(len(self._places), generator=random)]
            self._ordered_for = epoch
        return self._order[place * self.plan.batch : (place + 1) * self.plan.batch]

    def _loss(self, places: Tensor) -> Tensor:
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


def _is_bf16_quick() -> bool:
    """Whether this CPU has instructions for it; without, they are slower than those for f32."""
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())
