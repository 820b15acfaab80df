"""`headway compare TARGET ...`: any endpoints, side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from headway.catalog.known import spark_of
from headway.compare.commands import (
    DEFAULT_MODEL,
    DEFAULT_SECONDS,
    DEFAULT_STREAMS,
    NO_SPARK,
    compare_command,
    run_async,
    shown_model,
)
from headway.compare.embedded import running, serve_command
from headway.compare.measure import TargetSpeed, measure_targets
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.compare.speed.interrupt import end_interrupted, interruptible
from headway.compare.speed.journal import Journal
from headway.compare.targets.name import FORMS, TargetName, is_target, parse_target
from headway.compare.targets.opened import check_keys, opened
from headway.compare.targets.prices import PriceList
from headway.compare.targets.report import print_targets, targets_json
from headway.config import PricesSettings
from headway.errors import UsageError

MIN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class TargetsOptions:
    """url: of the headway whose modes are meant; without it a server is started for them, of the model that stands among the
    targets, else of DEFAULT_MODEL, with a spark as in compare_command. streams: on each target. seconds: of measuring in all.
    prices: a file. journal: of the requests."""

    url: str | None = None
    spark: str | None = None
    streams: int | None = None
    seconds: float = DEFAULT_SECONDS
    prices: Path | None = None
    journal: Path | None = None

    @property
    def streams_each(self) -> int:
        return 1 if self.streams is None else self.streams


def compare_any(words: Sequence[str], options: TargetsOptions, prices: PricesSettings, json_path: Path | None = None) -> None:
    """The words name what to compare; if they don't, headway's own modes are compared, in the way of compare_command."""
    if any(is_target(word) for word in words):
        compare_targets_command(words, options, prices, json_path)
        return
    if len(words) > 1:
        raise UsageError(f"{words[1]!r} is no target: {FORMS}")
    for name, value in (("--prices", options.prices), ("--journal", options.journal)):
        if value is not None:
            raise UsageError(f"{name} is for targets: name some, such as openai:MODEL")
    compare_command(
        model=words[0] if words else None,
        url=options.url,
        spark=options.spark,
        streams=DEFAULT_STREAMS if options.streams is None else options.streams,
        seconds=options.seconds,
        json_path=json_path,
    )


def compare_targets_command(
    words: Sequence[str], options: TargetsOptions, prices: PricesSettings, json_path: Path | None = None
) -> None:
    """Measure the targets side by side, print a table, and write JSON if a path is given (`-` = stdout, and the table to
    stderr). Interrupted, it does so with what was measured, and exits with 130. Raises HeadwayError (one line) for whatever the
    user can mend."""
    names = [parse_target(word) for word in dict.fromkeys(words) if is_target(word)]
    models = [word for word in words if not is_target(word)]
    modes = [name for name in names if name.mode is not None]
    check_words(options, models, modes)
    check_json_path(json_path)
    check_keys(names)
    price_list = PriceList.of(prices, options.prices)
    command = _command(words, options)
    with Bar(Console(stderr=True)) as bar, ExitStack() as stack:
        url = options.url
        if modes and url is None:
            model = models[0] if models else DEFAULT_MODEL
            server = stack.enter_context(running(server_command(model, options)))
            url = server.wait_ready(bar)
        speeds, interrupted = run_async(_measure(names, url, price_list, options, bar))
    print_targets(speeds, price_list.currency, options.streams_each, Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(targets_json(speeds, price_list.currency, command, options.streams_each, interrupted), json_path)
    if interrupted:
        end_interrupted(options.journal)


async def _measure(
    names: Sequence[TargetName], url: str | None, prices: PriceList, options: TargetsOptions, bar: Bar
) -> tuple[list[TargetSpeed], bool]:
    heading = {"targets": [name.text for name in names], "streams": options.streams_each, "seconds": options.seconds}
    async with opened(names, url=url, prices=prices) as targets:
        journal = Journal(options.journal, heading)
        with interruptible() as interrupted:
            try:
                speeds = await measure_targets(
                    targets,
                    streams=options.streams_each,
                    seconds=options.seconds,
                    reporter=bar,
                    journal=journal,
                    interrupted=interrupted,
                )
            finally:
                journal.close()
            return speeds, interrupted.is_set()


def server_command(model: str, options: TargetsOptions) -> list[str]:
    """What starts a server for its modes to be compared."""
    spark = spark_of(model) if options.spark is None else options.spark
    return serve_command(model, max(options.streams_each, DEFAULT_STREAMS), None if spark == NO_SPARK else spark)


def check_words(options: TargetsOptions, models: Sequence[str], modes: Sequence[TargetName]) -> None:
    """models: words that are no targets. modes: those targets that are. Raises UsageError."""
    if options.streams_each < 1:
        raise UsageError(f"--streams must be at least 1, not {options.streams_each}")
    if not MIN_SECONDS <= options.seconds < float("inf"):
        raise UsageError(f"--seconds must be at least {MIN_SECONDS:g}, not {options.seconds:g}")
    if len(models) > 1:
        raise UsageError(f"{models[0]!r} and {models[1]!r}: one model can be served for the comparison, and no more")
    started = bool(modes) and options.url is None
    if models and not started:
        raise UsageError(f"{models[0]!r} is no target; a model is served only for modes (standard, fast, spark), without --url")
    if options.spark is not None and not started:
        raise UsageError("--spark is of a server that is started for the comparison; none is")
    if options.url is not None and not modes:
        raise UsageError("--url says where headway's modes are found; name some: standard, fast, spark")


def _command(words: Sequence[str], options: TargetsOptions) -> str:
    typed = ["headway", "compare", *map(shown_model, words)]
    if options.url is not None:
        typed += ["--url", options.url]
    if options.spark is not None:
        typed += ["--spark", shown_model(options.spark)]
    return shlex.join([*typed, "--streams", str(options.streams_each), "--seconds", f"{options.seconds:g}"])
