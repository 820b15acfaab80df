"""The steps of a training: what any of them has, whatever is learned."""

from __future__ import annotations

import io
import math
import pickle
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headway.distill.whole_file import write_whole
from headway.errors import UsageError

Tensor = Any

LAST_RATE = 0.02
"""Of the learning rate, on top of the cosine."""
BETAS, DECAY, LARGEST_GRADIENT = (0.9, 0.95), 0.05, 1.0
WARM_UP = 50
"""Steps."""
SMOOTH = 0.03
"""Weight of the newest step in the loss that is shown."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Train for so many epochs, or minutes, or steps. batch: how much is learned from in one, in units of the trainer's."""

    epochs: float | None = None
    minutes: float | None = None
    steps: int | None = None
    batch: int = 512
    seed: int = 0


class Trainer:
    """One step after the other; `loss` is the smoothed one, `losses` every step's. What `restore` brings back goes on as if
    never stopped.

    A subclass says what a step learns from (`_loss`). Everything that it draws has to follow from `steps` and the seed.
    """

    def __init__(
        self, plan: Plan, parameters: dict[str, Tensor], steps_per_epoch: int, rate: float, facts: dict[str, Any]
    ) -> None:
        """rate: the highest learning rate. facts: what a checkpoint depends on besides the plan."""
        self.plan = plan
        self.steps = 0
        self.seconds = 0.0
        self.loss = math.nan
        self.losses: list[float] = []
        self.parameters = parameters
        self._facts = {**asdict(plan), **facts}
        self._rate = rate
        self._steps_per_epoch = steps_per_epoch
        self._optimizer = torch.optim.AdamW(list(parameters.values()), lr=rate, betas=BETAS, weight_decay=DECAY, fused=True)

    def prepare(self) -> Any:
        """A generator of how many of `num_tokens` are done of what has to be worked out before the first step, to be run to its
        end."""
        yield from ()

    def _loss(self) -> Tensor:
        raise NotImplementedError

    @property
    def device(self) -> str:
        return str(next(iter(self.parameters.values())).device)

    @property
    def num_tokens(self) -> int:
        """That are learned from."""
        raise NotImplementedError

    @property
    def epoch(self) -> float:
        """How many times the answers were gone through."""
        return self.steps / self._steps_per_epoch

    @property
    def progress(self) -> float:
        """From 0 to 1 at the end."""
        if self.plan.minutes is not None:
            return min(1.0, self.seconds / (60 * self.plan.minutes))
        steps = self.plan.steps
        if steps is None:
            assert self.plan.epochs is not None
            steps = math.ceil(self.plan.epochs * self._steps_per_epoch)
        return min(1.0, self.steps / steps)

    def step(self) -> float:
        """Learn from the next batch; returns its loss."""
        begun = time.perf_counter()
        rate = min(1.0, (self.steps + 1) / WARM_UP) * (0.5 * (1 + math.cos(math.pi * self.progress)) + LAST_RATE)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate * rate
        loss = self._loss()
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), LARGEST_GRADIENT)
        self._optimizer.step()
        self.steps += 1
        value = float(loss.detach())
        self.losses.append(value)
        self.loss = value if self.steps == 1 else (1 - SMOOTH) * self.loss + SMOOTH * value
        self.seconds += time.perf_counter() - begun
        return value

    def save(self, path: Path) -> None:
        """Raises OSError."""
        state = {
            "facts": self._facts,
            "steps": self.steps,
            "seconds": self.seconds,
            "loss": self.loss,
            "losses": self.losses,
            "parameters": {name: p.detach() for name, p in self.parameters.items()},
            "optimizer": self._optimizer.state_dict(),
        }
        buffer = io.BytesIO()  # torch's own writer has other errors for a full disk
        torch.save(state, buffer)
        write_whole(path, lambda file: file.write(buffer.getbuffer()))

    def restore(self, path: Path) -> None:
        """Raises UsageError if the checkpoint is damaged, or of another training."""
        try:
            device = next(iter(self.parameters.values())).device
            state = torch.load(path, map_location=device, weights_only=True)
            known = dict(state["facts"])
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UsageError(f"{path} can't be read ({reason}): delete it to train anew") from None
        for name, value in known.items():
            if self._facts.get(name) != value:
                hint = "go on with what it was begun with, or delete the file to train anew"
                raise UsageError(f"{path} is of a training with {name} = {value}, not {self._facts.get(name)}: {hint}")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(state["parameters"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self.steps, self.seconds, self.loss, self.losses = state["steps"], state["seconds"], state["loss"], state["losses"]


def chosen_device() -> Tensor:
    """A GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def half_pays(device: Tensor) -> bool:
    """Whether products are quicker in bf16: a CPU has to have instructions for it."""
    return device.type == "cuda" or bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def use_threads(threads: int | None) -> None:
    if threads:
        torch.set_num_threads(threads)


Glance = Callable[[], str]
"""Figures of what was learned so far, in a few words."""
