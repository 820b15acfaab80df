"""The course of a training: what it shows, and when it is saved."""

from __future__ import annotations

import time
from pathlib import Path

from headway.compare.progress import Bar
from headway.distill.answers import Answers
from headway.distill.gather import Stopped
from headway.distill.head.accuracy import Accuracy, accuracy
from headway.distill.head.trainer import Trainer
from headway.distill.stopping import Stop, stoppable
from headway.engines.openvino import NUM_DRAFTS

SAVE_SECONDS = 60.0
GLANCE = 1024
"""Places at which the head is tried during training."""


def train(trainer: Trainer, held_out: Answers, checkpoint: Path, bar: Bar, *, resume: bool = False) -> None:
    """To the end of its plan; from the checkpoint, if there is one and it shall be resumed, which is gone afterwards. Raises
    Stopped, UsageError and OSError."""
    if resume and checkpoint.exists():
        trainer.restore(checkpoint)
    with stoppable() as stop:
        _prepare(trainer, bar, stop)
        bar.stage(f"training on {trainer.device}", 1.0, trainer.progress)
        saved, seen = time.monotonic(), None
        while trainer.progress < 1:
            if stop.wanted:
                trainer.save(checkpoint)
                raise Stopped(stop.wanted, f"at epoch {trainer.epoch:.2f} of the training")
            trainer.step()
            if time.monotonic() - saved > SAVE_SECONDS:
                trainer.save(checkpoint)
                seen = accuracy(trainer.guess, held_out, NUM_DRAFTS, most=GLANCE)
                saved = time.monotonic()
            bar.reach(trainer.progress, _figures(trainer, seen))
    trainer.save(checkpoint)


def _prepare(trainer: Trainer, bar: Bar, stop: Stop) -> None:
    total = trainer.num_tokens
    bar.stage("working out the model's own distributions", total)
    for done in trainer.prepare():
        if stop.wanted:
            raise Stopped(stop.wanted, "before the training")
        bar.reach(done, f"{done:,} of {total:,} tokens")


def _figures(trainer: Trainer, seen: Accuracy | None) -> str:
    text = f"epoch {trainer.epoch:.2f}, loss {trainer.loss:.2f}"
    if seen is None:
        return text
    return f"{text}, guesses right {shares(seen)}, {seen.accepted:.2f} accepted a step"


def shares(seen: Accuracy) -> str:
    return " ".join(f"{right:.0%}" for right in seen.by_guess)
