"""`headway draft-head`: train a draft head for a model, on the model's own answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from headway.catalog.heads import DIGITS, own_path
from headway.catalog.home import home
from headway.catalog.resolve import resolve
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.config import Settings
from headway.distill.data_file import read_prompts
from headway.distill.gather import Gathered, Source, gather, open_source
from headway.distill.head.accuracy import accuracy
from headway.distill.head.report import Result, figures, print_report, to_json
from headway.distill.known import Features
from headway.distill.memory import keep_freed_memory
from headway.distill.prompts import MadeUp
from headway.distill.workplace import (
    CHECKPOINT,
    alone_in,
    check_checkpoint,
    check_folder,
    check_length,
    check_libraries,
    ending_well,
)
from headway.errors import UsageError

if TYPE_CHECKING:
    from headway.engines.draft_head import DraftHead
    from headway.engines.graph import Ends

DEFAULT_TOKENS = 400_000
LEAST_TOKENS = 1_000
DEFAULT_EPOCHS = 8.0
GLANCE = 1024
"""Places at which the head is tried during training."""


@dataclass(frozen=True, slots=True)
class DraftHeadOptions:
    """As on the command line. epochs, minutes: at most one of them. data, out, work: None = the default."""

    out: Path | None = None
    tokens: int = DEFAULT_TOKENS
    data: Path | None = None
    epochs: float | None = None
    minutes: float | None = None
    vocabulary: int = 8192
    work: Path | None = None
    resume: bool = False


def draft_head_command(settings: Settings, options: DraftHeadOptions, *, json_path: Path | None = None) -> None:
    """Collect answers, train, write the head, and print what it reaches; JSON if a path is given (`-` = stdout, and the table
    to stderr). Raises HeadwayError (one line) for whatever the user can mend, and SystemExit(128 + signal) after Ctrl-C, when
    all that was done is saved."""
    check_json_path(json_path)
    _check(options)
    if settings.model.name is None:
        raise UsageError("no model is given; try: headway draft-head smollm2")
    prompts = MadeUp() if options.data is None else read_prompts(options.data)
    check_libraries("draft-head", ["torch"])
    model = resolve(settings.model.name)
    out = options.out or own_path(model.sha256)
    work = options.work or home() / "distill" / model.sha256[:DIGITS]
    with ending_well(work), _opened(work, out), Bar(Console(stderr=True)) as bar:
        check_checkpoint(work, resume=options.resume)
        source = open_source(model, settings, bar, _features)
        gathered = gather(source, settings, prompts, options.tokens, work, bar)
        result, head = _trained(source, gathered, settings, options, prompts.name, work / CHECKPOINT, bar)
        part = out.with_name(out.name + ".part")
        head.save(part)
        part.replace(out)
        (work / CHECKPOINT).unlink(missing_ok=True)
    print_report(result, out, out.absolute() == own_path(model.sha256), Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(to_json(result, out, dict(head.card)), json_path)


def _trained(
    source: Source,
    gathered: Gathered,
    settings: Settings,
    options: DraftHeadOptions,
    prompts: str,
    checkpoint: Path,
    bar: Bar,
) -> tuple[Result, DraftHead]:
    from headway.distill.head.trainer import HeadTrainer
    from headway.distill.train import train
    from headway.distill.trainer import Plan
    from headway.engines.drafter import Drafter
    from headway.engines.openvino import NUM_DRAFTS

    keep_freed_memory()
    epochs = DEFAULT_EPOCHS if options.epochs is None and options.minutes is None else options.epochs
    vocabulary = min(options.vocabulary, len(source.ends.output))
    trainer = HeadTrainer(gathered.answers, source.ends, Plan(epochs, options.minutes), vocabulary, settings.engine.threads)

    def glance() -> str:
        return figures(accuracy(trainer.guess, gathered.held_out, NUM_DRAFTS, most=GLANCE))

    train(trainer, glance, checkpoint, bar, resume=options.resume)
    bar.phase("trying the head")
    keep = source.keep
    assert isinstance(keep, Features)
    head = trainer.network.head(keep.layers, {})
    drafter = Drafter(head, source.ends, NUM_DRAFTS, settings.engine.threads)
    seen = accuracy(
        lambda features, tokens: drafter.draft(features.astype("float32"), tokens.tolist())[0], gathered.held_out, NUM_DRAFTS
    )
    result = Result(
        model=source.model.id,
        sha256=source.model.sha256,
        prompts=prompts,
        tokens=trainer.num_tokens,
        answers=gathered.num_answers,
        epochs=trainer.epoch,
        loss=trainer.loss,
        seconds=trainer.seconds,
        device=trainer.device,
        vocabulary=vocabulary,
        coverage=trainer.coverage,
        held_out=seen,
    )
    return result, replace(head, card=result.card())


def _features(ends: Ends, num_layers: int) -> Features:
    """Of layers a third of the way, two thirds, and the last one."""
    layers = {max(0, num_layers * part // 3 - 1) for part in (1, 2, 3)}
    return Features(tuple(sorted(layers)), ends.output.shape[1])


def _check(options: DraftHeadOptions) -> None:
    if options.tokens < LEAST_TOKENS:
        raise UsageError(f"--tokens must be at least {LEAST_TOKENS:,}, not {options.tokens:,}")
    if options.vocabulary < 1:
        raise UsageError(f"--vocabulary must be at least 1, not {options.vocabulary}")
    check_length(epochs=options.epochs, minutes=options.minutes)


@contextlib.contextmanager
def _opened(work: Path, out: Path) -> Iterator[None]:
    """The folders exist, can be written to, and nobody else trains in `work`. Raises UsageError and OSError."""
    if out.parent == home() / "heads":
        out.parent.mkdir(parents=True, exist_ok=True)
    if out.is_dir():
        raise UsageError(f"--out: {out} is a folder; give a file in it")
    check_folder("--out", out.parent)
    with alone_in(work, "headway draft-head"):
        yield
