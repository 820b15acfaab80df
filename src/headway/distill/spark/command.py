"""`headway distill`: make a smaller model of a larger one, on the larger one's own answers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gguf import GGUFReader
from rich.console import Console

from headway.catalog.gguf_file import GgufInfo, inspect
from headway.catalog.heads import DIGITS
from headway.catalog.home import home
from headway.catalog.local import LocalModel
from headway.catalog.resolve import resolve
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.config import Settings
from headway.distill.answers import Answers
from headway.distill.data_file import read_prompts
from headway.distill.gather import Gathered, Source, gather, open_source
from headway.distill.known import Likeliest
from headway.distill.library import reference
from headway.distill.memory import keep_freed_memory
from headway.distill.prompts import MadeUp
from headway.distill.spark.gguf_out import KINDS, write_gguf
from headway.distill.spark.result import Result, card, print_result, to_json
from headway.distill.spark.vocabulary import OutputVocabulary, choose
from headway.distill.whole_file import write_whole
from headway.distill.workplace import (
    CHECKPOINT,
    alone_in,
    check_checkpoint,
    check_folder,
    check_length,
    check_libraries,
    ending_well,
)
from headway.engines.shortlist import OUTPUT_TOKENS
from headway.errors import UsageError
from headway.runtime.texts import load_texts

if TYPE_CHECKING:
    from headway.distill.spark.llama import Llama
    from headway.distill.spark.pruning import Choice
    from headway.distill.spark.quality import Quality
    from headway.distill.spark.trainer import SparkTrainer

DEFAULT_LAYERS, DEFAULT_TOKENS, DEFAULT_EPOCHS = 8, 1_000_000, 4.0
LEAST_TOKENS = 1_000
LAYERS = "layers.json"
TEACHER, KEPT = "headway.teacher.sha256", "headway.teacher.layers"
"""In a spark's GGUF."""
BATCH_TOKENS = 4096
TRIAL_STEPS, TRIAL_TOKENS = 20, 2048
"""Of training that each choice of layers gets, before the best one is kept."""
CHAPTER = 4_000
"""Characters of each chapter of the held-out text that are read: all of them have their say."""
GLANCE = 12
"""Answers on which the spark is tried during training."""


@dataclass(frozen=True, slots=True)
class DistillOptions:
    """As on the command line. epochs, minutes, steps: at most one of them. layers, out, data, work: None = the default.
    vocabulary: tokens that the spark speaks with; None = the teacher's. start: a spark to go on from."""

    layers: int | None = None
    out: Path | None = None
    tokens: int = DEFAULT_TOKENS
    data: Path | None = None
    epochs: float | None = None
    minutes: float | None = None
    steps: int | None = None
    quantization: str = "q8_0"
    vocabulary: int | None = None
    start: str | None = None
    work: Path | None = None
    resume: bool = False


def distill_command(settings: Settings, options: DistillOptions, *, json_path: Path | None = None) -> None:
    """Collect answers, choose layers, train them, write a GGUF and its card, and print what it reaches; JSON if a path is given
    (`-` = stdout, and the table to stderr). Raises HeadwayError (one line) for whatever the user can mend, and SystemExit(128 +
    signal) after Ctrl-C, when all that was done is saved."""
    check_json_path(json_path)
    _check(options)
    if settings.model.name is None:
        raise UsageError("no model is given; try: headway distill smollm2 --out smollm2-spark")
    prompts = MadeUp() if options.data is None else read_prompts(options.data)
    check_libraries("distill", ["torch", "transformers", "accelerate"])
    model = resolve(settings.model.name)
    begun = _begun(options, model)
    count = len(begun.kept) if begun is not None else options.layers or DEFAULT_LAYERS
    info = _teacher(model, count)
    out = options.out or Path(f"{model.id}-spark")
    work = options.work or home() / "distill" / f"{model.sha256[:DIGITS]}-spark"
    check_folder("--out", out.absolute().parent)
    try:
        with ending_well(work), alone_in(work, "headway distill"), Bar(Console(stderr=True)) as bar:
            check_checkpoint(work, resume=options.resume)
            source = open_source(model, settings, bar, lambda ends, layers: Likeliest())
            gathered = gather(source, settings, prompts, options.tokens, work, bar)
            result, file, losses = _trained(source, info, gathered, settings, options, begun, prompts.name, work, out, bar)
            for name in (CHECKPOINT, LAYERS):
                (work / name).unlink(missing_ok=True)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise UsageError("there is not enough memory to train this model here") from None
    print_result(result, file, Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(to_json(result, file, losses), json_path)


def _trained(
    source: Source,
    info: GgufInfo,
    gathered: Gathered,
    settings: Settings,
    options: DistillOptions,
    begun: Begun | None,
    prompts: str,
    work: Path,
    out: Path,
    bar: Bar,
) -> tuple[Result, Path, list[float]]:
    from headway.distill.spark.llama import read_llama
    from headway.distill.spark.quality import agreement, quality
    from headway.distill.spark.trainer import SparkTrainer
    from headway.distill.train import train
    from headway.distill.trainer import Plan, use_threads

    keep_freed_memory()
    use_threads(settings.engine.threads)
    bar.phase("reading the teacher")
    teacher = read_llama(source.model.path)
    tokenizer, _ = load_texts(source.model, settings)
    vocabulary = None
    answers, held_out, of = gathered.answers, gathered.held_out, None
    if options.vocabulary is not None:
        bar.phase("choosing a vocabulary")
        vocabulary = choose(answers, tokenizer.token_bytes, sorted(tokenizer.eos_ids), options.vocabulary)
        answers, _ = vocabulary.rewritten(answers)
        held_out, of = vocabulary.rewritten(held_out)
    choice = _layers(teacher, answers, options, begun, work, settings, bar)
    epochs = DEFAULT_EPOCHS if (options.epochs, options.minutes, options.steps) == (None, None, None) else options.epochs
    plan = Plan(epochs, options.minutes, options.steps, BATCH_TOKENS)
    student = teacher.with_layers(choice.kept) if begun is None else teacher.with_body_of(read_llama(begun.path))
    facts = {
        "layers": list(choice.kept),
        "vocabulary": options.vocabulary,
        "start": begun.sha256 if begun is not None else None,
    }
    trainer = SparkTrainer(student, answers, plan, facts, settings.engine.threads)

    def glance() -> str:
        return f"agrees {agreement(student, held_out, of, GLANCE):.1%}"

    train(trainer, glance, work / CHECKPOINT, bar, resume=options.resume)
    bar.phase("writing the model")
    name = out.absolute().name
    file = out / f"{name}.{options.quantization.upper()}.gguf"
    out.mkdir(exist_ok=True)
    part = file.with_name(file.name + ".part")
    values = {key: p.detach().float().cpu().numpy() for key, p in trainer.parameters.items()}
    about = f"{len(choice.kept)} of the {teacher.num_layers} layers of {source.model.id}, distilled by headway"
    stated: dict[str, str | Sequence[int]] = {TEACHER: source.model.sha256, KEPT: choice.kept}
    if vocabulary is not None:
        stated[OUTPUT_TOKENS] = vocabulary.tokens.tolist()
    write_gguf(
        part,
        source.model.path,
        values,
        len(choice.kept),
        options.quantization,
        name=name,
        description=about,
        facts=stated,
    )
    part.replace(file)
    text = [token for chapter in reference() for token in tokenizer.encode(chapter[:CHAPTER])]
    makers: list[tuple[str, Callable[[], Llama], OutputVocabulary | None]] = [
        ("the teacher", lambda: teacher, None),
        ("the spark", lambda: read_llama(file), vocabulary),
        ("the untrained one", lambda: teacher.with_layers(choice.kept), None),
    ]
    seen: list[Quality] = []
    for title, make, spoken in makers:
        bar.phase(f"measuring {title}")
        seen.append(quality(make(), gathered.held_out, text, spoken))
    result = Result(
        name=name,
        teacher=source.model.id,
        sha256=source.model.sha256,
        licence=info.licence,
        kept=choice.kept,
        teacher_layers=teacher.num_layers,
        how=choice.how,
        quantization=options.quantization,
        prompts=prompts,
        vocabulary=options.vocabulary,
        parts=len(held_out.tokens) / len(gathered.held_out.tokens),
        start=options.start,
        tokens=len(gathered.answers.tokens),
        answers=gathered.num_answers,
        epochs=trainer.epoch,
        steps=trainer.steps,
        loss=trainer.loss,
        seconds=trainer.seconds,
        device=trainer.device,
        held_out=len(gathered.held_out.tokens),
        teacher_quality=seen[0],
        spark=seen[1],
        untrained=seen[2],
    )
    write_whole(out / "README.md", lambda readme: readme.write(card(result, file).encode()))
    return result, file, trainer.losses


def _layers(
    teacher: Llama, answers: Answers, options: DistillOptions, begun: Begun | None, work: Path, settings: Settings, bar: Bar
) -> Choice:
    """Those of the spark that is gone on from, or the choice that a stopped training has made, or the one that is best after
    some steps of training."""
    from headway.distill.spark.pruning import Choice, candidates
    from headway.distill.spark.trainer import SparkTrainer
    from headway.distill.trainer import Plan

    if begun is not None:
        return Choice(f"as in {options.start}", begun.kept, math.nan)
    wanted = options.layers or DEFAULT_LAYERS
    path = work / LAYERS
    if options.resume and path.exists():
        known = json.loads(path.read_bytes())
        if len(known["kept"]) != wanted:
            raise UsageError(f"{work} is of a training with --layers {len(known['kept'])}: go on with that, or delete it")
        return Choice(known["how"], tuple(known["kept"]), known["loss"])
    bar.stage("choosing layers", 1.0)
    choices = candidates(teacher, answers, wanted, lambda share: bar.reach(share / 2, ""))
    best: list[tuple[float, Choice]] = []
    for number, choice in enumerate(choices):
        plan = Plan(steps=TRIAL_STEPS, batch=TRIAL_TOKENS)
        trial = SparkTrainer(teacher.with_layers(choice.kept), answers, plan, {}, settings.engine.threads)
        bar.reach(0.5 + 0.5 * number / len(choices), f"trying {choice.how}: {', '.join(map(str, choice.kept))}")
        best.append((_tried(trial), choice))
    loss, choice = min(best, key=lambda pair: pair[0])
    write_whole(path, lambda file: file.write(json.dumps({"how": choice.how, "kept": choice.kept, "loss": loss}).encode()))
    return Choice(choice.how, choice.kept, loss)


def _tried(trial: SparkTrainer) -> float:
    """The mean loss of its last steps."""
    for _ in range(TRIAL_STEPS):
        trial.step()
    last = trial.losses[-TRIAL_STEPS // 4 :]
    return sum(last) / len(last)


def _teacher(model: LocalModel, layers: int) -> GgufInfo:
    """Raises UsageError for one that no spark with so many layers can be made of."""
    from headway.distill.spark.llama import check_teacher

    if model.kind != "gguf":
        raise UsageError(f"{model.id} is no GGUF: a spark is made of one, and is one")
    info = inspect(model.path)
    check_teacher(info)
    if info.block_count is not None and layers >= info.block_count:
        raise UsageError(f"{model.id} has {info.block_count} layers: --layers has to be less, not {layers}")
    return info


@dataclass(frozen=True, slots=True)
class Begun:
    """A spark that is gone on from. kept: which of its teacher's layers it was made of."""

    path: Path
    sha256: str
    kept: tuple[int, ...]


def _begun(options: DistillOptions, teacher: LocalModel) -> Begun | None:
    """Raises UsageError for one that isn't a spark of this teacher."""
    if options.start is None:
        return None
    if options.layers is not None:
        raise UsageError("--start has its own layers: leave out --layers")
    model = resolve(options.start)
    fields = GGUFReader(model.path).fields if model.kind == "gguf" else {}
    if TEACHER not in fields or KEPT not in fields:
        raise UsageError(f"{options.start} doesn't say what it was made of: --start takes a spark made by headway distill")
    if fields[TEACHER].contents() != teacher.sha256:
        raise UsageError(f"{options.start} was made of another teacher than {teacher.id}: begin anew, without --start")
    return Begun(model.path, model.sha256, tuple(fields[KEPT].contents()))


def _check(options: DistillOptions) -> None:
    if options.layers is not None and options.layers < 1:
        raise UsageError(f"--layers must be at least 1, not {options.layers}")
    if options.tokens < LEAST_TOKENS:
        raise UsageError(f"--tokens must be at least {LEAST_TOKENS:,}, not {options.tokens:,}")
    if options.quantization not in KINDS:
        raise UsageError(f"--quantization must be one of {', '.join(KINDS)}, not {options.quantization}")
    check_length(epochs=options.epochs, minutes=options.minutes, steps=options.steps)
