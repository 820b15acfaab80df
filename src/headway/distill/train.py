"""The course of a training: what it shows, and when it is saved."""

from __future__ import annotations

import time
from pathlib import Path

from headway.compare.progress import Bar
from headway.distill.gather import Stopped
from headway.distill.stopping import Stop, stoppable
from headway.distill.trainer import Glance, Trainer

SAVE_SECONDS = 60.0
SAVE_SHARE = 0.02
"""Of the time, that saving and glancing may take: they come the less often, the longer they take."""


def train(trainer: Trainer, glance: Glance, checkpoint: Path, bar: Bar, *, resume: bool = False) -> None:
    """To the end of its plan; from the checkpoint, if there is one and it shall be resumed, which the caller deletes when
    all is done. glance: asked now and then. Raises Stopped, UsageError and OSError."""
    if resume and checkpoint.exists():
        trainer.restore(checkpoint)
    with stoppable() as stop:
        _prepare(trainer, bar, stop)
        bar.stage(f"training on {trainer.device}", 1.0, trainer.progress)
        saved, seen, pause = time.monotonic(), "", SAVE_SECONDS
        while trainer.progress < 1:
            if stop.wanted:
                trainer.save(checkpoint)
                raise Stopped(stop.wanted, f"at epoch {trainer.epoch:.2f} of the training")
            trainer.step()
            if (now := time.monotonic()) - saved > pause:
                trainer.save(checkpoint)
                seen = ", " + glance()
                saved = time.monotonic()
                pause = max(SAVE_SECONDS, (saved - now) / SAVE_SHARE)
            bar.reach(trainer.progress, f"epoch {trainer.epoch:.2f}, loss {trainer.loss:.2f}{seen}")
    trainer.save(checkpoint)


def _prepare(trainer: Trainer, bar: Bar, stop: Stop) -> None:
    total, begun = trainer.num_tokens, False
    for done in trainer.prepare():
        if stop.wanted:
            raise Stopped(stop.wanted, "before the training")
        if not begun:
            bar.stage("working out the model's own distributions", total)
            begun = True
        bar.reach(done, f"{done:,} of {total:,} tokens")
