"""`headway compare --quick`, `--suites`: what each target can do, and what a right answer takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path

from rich.console import Console

from headway.catalog.known import spark_of
from headway.compare.capability.asking import Asking, Column
from headway.compare.capability.figures import figures_of
from headway.compare.capability.journal import AnswerJournal
from headway.compare.capability.options import CapabilityOptions
from headway.compare.capability.outcome import judge
from headway.compare.capability.report import print_capability
from headway.compare.capability.result import CapabilityResult
from headway.compare.client import Client
from headway.compare.commands import DEFAULT_MODEL, DEFAULT_STREAMS, NO_SPARK, run_async, shown_model
from headway.compare.embedded import running
from headway.compare.endpoint import base_url, find_spark
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.compare.speed.interrupt import end_interrupted, interruptible
from headway.compare.targets.commands import TargetsOptions, check_words, server_command
from headway.compare.targets.endpoint import EndpointTarget
from headway.compare.targets.name import TargetName, is_target, parse_target
from headway.compare.targets.opened import check_keys, opened
from headway.compare.targets.prices import PriceList
from headway.config import PricesSettings
from headway.errors import HeadwayError
from headway.modes import ModeName

STANDARD_AT_ONCE = 8
FAST_AT_ONCE = 2
ELSEWHERE_AT_ONCE = 4


def compare_capability(
    words: Sequence[str],
    options: TargetsOptions,
    capability: CapabilityOptions,
    prices: PricesSettings,
    json_path: Path | None = None,
) -> None:
    """Ask the targets the tasks, print tables, and write what else `capability` (checked) wants. Without targets:
    headway's modes, on a server that is started for the purpose, or on the one at `options.url`. Interrupted, it does so with
    what was answered, and exits with 130. Raises HeadwayError (one line) for whatever the user can mend."""
    names = [parse_target(word) for word in dict.fromkeys(words) if is_target(word)]
    models = [word for word in words if not is_target(word)]
    own = not names
    if own:
        model = models[0] if models else DEFAULT_MODEL
        names = _modes(spark_of(model) if options.spark is None else options.spark, options.url)
    modes = [name for name in names if name.mode is not None]
    check_words(options, models, modes)
    check_json_path(json_path)
    check_keys(names)
    if capability.plots is not None:
        from headway.compare.page.png import check_plots

        check_plots()
    price_list = PriceList.of(prices, options.prices)
    with Bar(Console(stderr=True)) as bar, ExitStack() as stack:
        url = options.url
        if modes and url is None:
            server = stack.enter_context(running(server_command(models[0] if models else DEFAULT_MODEL, options)))
            url = server.wait_ready(bar)
        result = run_async(_ask(names, url, price_list, options, capability, bar, _command(words, options, capability), own))
    print_capability(result, Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(result.json(), json_path)
    if capability.report is not None:
        from headway.compare.page.page import write_page

        write_page(result, capability.report)
    if capability.plots is not None:
        from headway.compare.page.png import write_plots

        write_plots(result, capability.plots)
    if result.interrupted:
        end_interrupted(options.journal)


async def _ask(
    names: Sequence[TargetName],
    url: str | None,
    prices: PriceList,
    options: TargetsOptions,
    capability: CapabilityOptions,
    bar: Bar,
    command: str,
    own: bool,
) -> CapabilityResult:
    """own: the targets are headway's modes, whichever the server has."""
    if own and url is not None and not await _has_spark(url):
        names = [name for name in names if name.mode is not ModeName.SPARK]
    suites, notes = capability.chosen()
    counts = capability.counts(suites)
    work = [(suite.name, task) for suite in suites for task in suite.tasks(capability.seed, counts[suite.name])]
    heading = {
        "targets": [name.text for name in names],
        "seed": capability.seed,
        "tasks": counts,
        "thinking": capability.thinking,
    }
    houses = any(name.mode in (ModeName.STANDARD, ModeName.FAST) for name in names)
    asked = [*names, parse_target("standard")] if houses else list(names)
    async with opened(asked, url=url, prices=prices) as targets:
        landlord = targets[-1] if houses else None
        journal = AnswerJournal(options.journal, heading)
        with interruptible() as interrupted:
            try:
                columns = [_column(target, name, options) for target, name in zip(targets, names, strict=False)]
                for target in targets:
                    await _probe(target, columns, bar)
                await Asking(work, journal, bar, interrupted, capability.thinking, landlord).run(columns)
            finally:
                journal.close()
            for column in columns:
                bar.phase(f"checking the answers of {column.target.label}")
                judge(column.outcomes)
            notes += _notes(columns)
            return CapabilityResult(
                command=command,
                on=date.today().isoformat(),
                seed=capability.seed,
                suites={suite.name: suite.about for suite in suites},
                tasks=counts,
                targets=tuple(figures_of(column, [suite.name for suite in suites]) for column in columns),
                currency=prices.currency,
                notes=tuple(notes),
                interrupted=interrupted.is_set(),
            )


def _column(target: EndpointTarget, name: TargetName, options: TargetsOptions) -> Column:
    """A mode of headway is asked as it would be on a server in use: standard and fast beside a full house of standard streams,
    spark with the device to itself, as it would have a chip of its own."""
    streams = DEFAULT_STREAMS if options.streams is None else options.streams
    match name.mode:
        case ModeName.STANDARD:
            own = min(STANDARD_AT_ONCE, streams)
            return Column(target, own, streams - own)
        case ModeName.FAST:
            return Column(target, FAST_AT_ONCE, streams)
        case ModeName.SPARK:
            return Column(target, 1)
        case _:
            return Column(target, ELSEWHERE_AT_ONCE if options.streams is None else options.streams)


async def _probe(target: EndpointTarget, columns: Sequence[Column], bar: Bar) -> None:
    """One that can't be asked doesn't keep the others from it. Raises HeadwayError if none can."""
    bar.phase(f"trying {target.label}")
    try:
        await target.probe()
    except HeadwayError as error:
        for column in columns:
            if column.target is target:
                column.gave_up = str(error)
        if columns and all(column.gave_up is not None for column in columns):
            raise


def _notes(columns: Sequence[Column]) -> list[str]:
    notes = []
    for column in columns:
        label, target = column.target.label, column.target
        if column.gave_up is not None:
            notes.append(f"{label}: given up: {column.gave_up}")
        failed = [outcome.failure for outcome in column.outcomes if outcome.failure is not None]
        if failed:
            notes.append(
                f"{label}: the API failed on {len(failed)} tasks, which count neither as right nor as wrong: {failed[0]}"
            )
        records = [answer.record for outcome in column.outcomes for answer in outcome.answers]
        if isinstance(target, EndpointTarget):
            said = [target.served_as_asked(record) for record in records]
            if False in said:
                notes.append(f"{label}: {said.count(True)} of {len(said)} answers were served as asked, by the endpoint's word")
            if target.unheld:
                notes.append(f"{label}: refused {target.unheld} schemas; for these, JSON was asked for in words alone")
        if retried := sum(record.retries for record in records):
            notes.append(f"{label}: {retried} requests were refused and sent again later; the waits are part of the seconds")
        cut = sum(record.finish_reason == "length" for record in records)
        if cut:
            notes.append(f"{label}: {cut} of {len(records)} answers ended at their limit of tokens; --thinking raises it")
    return notes


async def _has_spark(url: str) -> bool:
    async with Client(base_url(url)) as client:
        return await find_spark(client) is not None


def _modes(spark: str | None, url: str | None) -> list[TargetName]:
    """headway's own: of a running server, whichever it has."""
    with_spark = url is not None or (spark is not None and spark != NO_SPARK)
    return [parse_target(mode) for mode in ("standard", "fast", *(("spark",) if with_spark else ()))]


def _command(words: Sequence[str], options: TargetsOptions, capability: CapabilityOptions) -> str:
    """As the user could type it again; it names no folder of theirs."""
    typed = ["headway", "compare", *map(shown_model, words)]
    given = (
        ("--url", options.url),
        ("--spark", options.spark),
        ("--streams", options.streams),
        ("--suites", capability.suites),
    )
    for flag, value in (*given, ("--tasks", capability.tasks)):
        if value is not None:
            typed += [flag, shown_model(str(value))]
    typed += ["--quick"] * capability.quick + ["--seed", str(capability.seed)]
    return shlex.join([*typed, "--thinking", str(capability.thinking)] if capability.thinking else typed)
