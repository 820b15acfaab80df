"""`headway draft-head`: train a draft head for a model, on the model's own answers."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from rich.console import Console

from headway.catalog.heads import DIGITS, own_path
from headway.catalog.home import home
from headway.catalog.resolve import resolve
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.config import Settings
from headway.distill.data_file import read_prompts
from headway.distill.gather import Gathered, Source, Stopped, gather, open_source
from headway.distill.head.accuracy import accuracy
from headway.distill.head.report import Result, print_report, to_json
from headway.distill.memory import keep_freed_memory
from headway.distill.prompts import MadeUp
from headway.errors import UsageError

if TYPE_CHECKING:
    from headway.engines.draft_head import DraftHead

DEFAULT_TOKENS = 400_000
LEAST_TOKENS = 1_000
DEFAULT_EPOCHS = 8.0
CHECKPOINT = "checkpoint.pt"


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
    _check_torch()
    model = resolve(settings.model.name)
    out = options.out or own_path(model.sha256)
    work = options.work or home() / "distill" / model.sha256[:DIGITS]
    try:
        with _opened(work, out), Bar(Console(stderr=True)) as bar:
            _check_checkpoint(work / CHECKPOINT, options)
            source = open_source(model, settings, bar)
            gathered = gather(source, settings, prompts, options.tokens, work, bar)
            result, head = _trained(source, gathered, settings, options, prompts.name, work / CHECKPOINT, bar)
            part = out.with_name(out.name + ".part")
            head.save(part)
            part.replace(out)
            (work / CHECKPOINT).unlink(missing_ok=True)
    except Stopped as stopped:
        print(f"headway: stopped {stopped.reached}; go on with: {_resume_command()}", file=sys.stderr)
        raise SystemExit(128 + stopped.number) from None
    except OSError as error:
        raise UsageError(f"{error.filename or work} can't be used: {error.strerror or error}") from None
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
    from headway.distill.head.trainer import Plan, Trainer
    from headway.distill.train import train
    from headway.engines.drafter import Drafter
    from headway.engines.openvino import NUM_DRAFTS

    keep_freed_memory()
    epochs = DEFAULT_EPOCHS if options.epochs is None and options.minutes is None else options.epochs
    plan = Plan(min(options.vocabulary, len(source.ends.output)), epochs, options.minutes)
    trainer = Trainer(gathered.answers, source.ends, plan, settings.engine.threads)
    train(trainer, gathered.held_out, checkpoint, bar, resume=options.resume)
    bar.phase("trying the head")
    head = trainer.network.head(source.layers, {})
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
        vocabulary=plan.vocabulary,
        coverage=trainer.coverage,
        held_out=seen,
    )
    return result, replace(head, card=result.card())


def _check(options: DraftHeadOptions) -> None:
    if options.tokens < LEAST_TOKENS:
        raise UsageError(f"--tokens must be at least {LEAST_TOKENS:,}, not {options.tokens:,}")
    if options.vocabulary < 1:
        raise UsageError(f"--vocabulary must be at least 1, not {options.vocabulary}")
    if options.epochs is not None and options.minutes is not None:
        raise UsageError("give --epochs or --minutes, not both")
    for name, value in (("--epochs", options.epochs), ("--minutes", options.minutes)):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{name} must be more than 0, not {value:g}")


def _check_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise UsageError("draft-head trains with PyTorch, which isn't installed: pip install 'torch>=2.13'") from None
    except OSError as error:
        raise UsageError(f"PyTorch is installed, but can't be loaded ({error}): install it anew") from None


def _check_checkpoint(checkpoint: Path, options: DraftHeadOptions) -> None:
    if checkpoint.exists() and not options.resume:
        raise UsageError(f"{checkpoint} is of a training that was stopped: go on with --resume, or delete it to train anew")


@contextlib.contextmanager
def _opened(work: Path, out: Path) -> Iterator[None]:
    """The folders exist, can be written to, and nobody else trains in `work`. Raises UsageError and OSError."""
    if out.parent == home() / "heads":
        out.parent.mkdir(parents=True, exist_ok=True)
    if out.is_dir():
        raise UsageError(f"--out: {out} is a folder; give a file in it")
    if not out.parent.is_dir():
        raise UsageError(f"--out: the folder {out.parent} doesn't exist")
    if not os.access(out.parent, os.W_OK):
        raise UsageError(f"--out: {out.parent} can't be written to")
    work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(work / "lock", timeout=0):
            yield
    except Timeout:
        raise UsageError(f"another headway draft-head works in {work}: give another --work") from None


def _resume_command() -> str:
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return shlex.join(["headway", *words, "--resume"])
