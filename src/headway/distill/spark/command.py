"""`headway distill`: make a smaller model of a larger one, on the larger one's own answers."""

from __future__ import annotations

from pathlib import Path

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
from headway.distill.data_file import read_prompts
from headway.distill.gather import gather, open_source
from headway.distill.known import Likeliest
from headway.distill.prompts import MadeUp
from headway.distill.spark.gguf_out import KINDS
from headway.distill.spark.making import KEPT, LAYERS, TEACHER, Making
from headway.distill.spark.options import DEFAULT_LAYERS, Begun, DistillOptions
from headway.distill.spark.result import print_result, to_json
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

LEAST_TOKENS = 1_000


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
            making = Making(source, info, gathered, settings, options, begun, prompts.name, work, out, bar)
            result, file, losses = making.run()
            for name in (CHECKPOINT, LAYERS):
                (work / name).unlink(missing_ok=True)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise UsageError("there is not enough memory to train this model here") from None
    print_result(result, file, Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(to_json(result, file, losses), json_path)


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
    return Begun(model.id, model.path, model.sha256, tuple(fields[KEPT].contents()))


def _check(options: DistillOptions) -> None:
    if options.layers is not None and options.layers < 1:
        raise UsageError(f"--layers must be at least 1, not {options.layers}")
    if options.tokens < LEAST_TOKENS:
        raise UsageError(f"--tokens must be at least {LEAST_TOKENS:,}, not {options.tokens:,}")
    if options.quantization not in KINDS:
        raise UsageError(f"--quantization must be one of {', '.join(KINDS)}, not {options.quantization}")
    check_length(epochs=options.epochs, minutes=options.minutes, steps=options.steps)
