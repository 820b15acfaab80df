"""`headway load`: a load against one target, measured."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from headway.compare.commands import run_async
from headway.compare.machine import describe, machine_facts, versions
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.compare.speed.counting import count_missing, token_counter
from headway.compare.speed.figures import point_figures
from headway.compare.speed.goodput import is_objective, parse_objectives
from headway.compare.speed.interrupt import end_interrupted, interruptible
from headway.compare.speed.journal import Journal
from headway.compare.speed.options import LoadOptions
from headway.compare.speed.plan import Plan, Point
from headway.compare.speed.report import Row, notes_of, point_json, print_load
from headway.compare.speed.run import PointRun, run_plan
from headway.compare.speed.synthetic import Scale, measured_scale
from headway.compare.targets.endpoint import EndpointTarget, Patience
from headway.compare.targets.name import TargetName, parse_target
from headway.compare.targets.opened import opened
from headway.errors import UsageError


def load_command(words: Sequence[str], options: LoadOptions, json_path: Path | None = None) -> None:
    """Load the target that the words name (the others are objectives, as in `--goodput ttft:500 tpot:30`), print the figures,
    and write JSON if a path is given (`-` = stdout, and the table to stderr). Interrupted, it does so with what was measured,
    and exits with 130. Raises HeadwayError (one line) for whatever the user can mend."""
    options = replace(options.settled(), goodput=(*options.goodput, *(word for word in words if is_objective(word))))
    names = [word for word in words if not is_objective(word)]
    if len(names) != 1:
        raise UsageError(
            "name one target to load, such as http://127.0.0.1:8000#MODEL" + (f", not {len(names)}" if names else "")
        )
    name, objectives, percents = parse_target(names[0]), parse_objectives(options.goodput), options.percents()
    check_json_path(json_path)
    plan = options.plan()
    with Bar(Console(stderr=True)) as bar:
        runs, target, scale_known, counted = run_async(_measure(name, plan, options, bar))
    rows = [
        (run, point_figures(run.records, [run.window], objectives=objectives, percents=percents, is_open=run.point.is_open))
        for run in runs
    ]
    notes = [*notes_of(rows), *_notes(plan, rows, target, scale_known, counted)]
    about = [f"Target: {target.label} (model {target.model})", f"Machine: {describe(machine_facts())}"]
    print_load(rows, notes, about, Console(stderr=json_path == STDOUT))
    interrupted = len(runs) < len(plan.points) or not all(run.is_whole for run in runs)
    if json_path is not None:
        write_json(_report(rows, target, options, notes, interrupted, counted), json_path)
    if interrupted:
        end_interrupted(options.journal)


Outcome = tuple[list[PointRun], EndpointTarget, bool, int]


async def _measure(name: TargetName, plan: Plan, options: LoadOptions, bar: Bar) -> Outcome:
    heading = {"target": name.text, "plan": options.settings()}
    async with opened([name], url=options.url, patience=Patience(retries=options.retries)) as (target,):
        journal = Journal(options.journal, heading)
        bar.phase(f"trying {target.label}")
        await target.probe()
        scale = None if plan.content.given else await measured_scale(target, plan.content.seed)
        with interruptible() as interrupted:
            try:
                runs = await run_plan(plan, target, scale or Scale(), journal, interrupted, _progress(bar, plan))
            finally:
                journal.close()
    missing = [record for run in runs for record in run.records]
    counted = 0
    if options.tokenizer is not None and any(r.succeeded and r.output_tokens is None for r in missing):
        counted = count_missing(missing, token_counter(options.tokenizer))
    return runs, target, scale is not None or bool(plan.content.given), counted


def _progress(bar: Bar, plan: Plan) -> Any:
    shown: list[Point] = []

    def progress(point: Point, ended: int, seconds: float) -> None:
        by_time = plan.limits.seconds is not None
        total = plan.limits.seconds or float(plan.limits.requests or len(plan.trace))
        if point not in shown:
            shown.append(point)
            bar.stage(point.label, total)
        bar.reach(seconds if by_time else ended, f"{ended} requests")

    return progress


def _notes(plan: Plan, rows: Sequence[Row], target: EndpointTarget, scale_known: bool, counted: int) -> list[str]:
    notes = []
    if not scale_known:
        notes.append("the endpoint doesn't tell how many tokens a word is; one was assumed for made-up prompts.")
    if counted:
        notes.append(f"output tokens of {counted} requests were counted by the tokenizer, from their joined text.")
    if any(prompt.is_estimated for prompt in plan.content.given) and plan.content.output_tokens is None:
        notes.append("the wanted lengths of answers were estimated, at 4 characters a token (--tokenizer counts them).")
    sent = max((f.sent for _, f in rows), default=0)
    if plan.content.given and sent > len(plan.content.given):
        notes.append(
            f"the {len(plan.content.given)} prompts were sent more than once: a prefix cache may have spared their prefill."
        )
    if target.left_out & {"ignore_eos"} and not plan.content.may_end:
        notes.append("the endpoint can't be told to go on past an answer's end, so answers may be shorter than was wanted.")
    if left := sorted(target.left_out & {"temperature", "stream_options"}):
        notes.append(f"the endpoint refused {' and '.join(left)}, so requests went without.")
    said = [target.served_as_asked(record) for run, _ in rows for record in run.records if record.succeeded]
    if wrong := said.count(False):
        notes.append(
            f"of {len(said)} requests, {wrong} were not served at the tier or speed that was asked for, by its own word."
        )
    return notes


def _report(
    rows: Sequence[Row], target: EndpointTarget, options: LoadOptions, notes: list[str], interrupted: bool, counted: int
) -> dict[str, Any]:
    known = any(f.output_tokens is not None for _, f in rows)
    return {
        "machine": machine_facts(),
        "versions": versions(("headway",)),
        "command": _command(target.label, options),
        "target": target.label,
        "model": target.model,
        "settings": options.settings(),
        "output_tokens_from": ("tokenizer" if counted else "usage") if known else None,
        "interrupted": interrupted,
        "points": [point_json(run, figures) for run, figures in rows],
        "notes": notes,
    }


def _command(label: str, options: LoadOptions) -> str:
    """As the user could type it again."""
    words, defaults = ["headway", "load", label], LoadOptions().settings()
    for name, value in options.settings().items():
        if value != defaults[name]:
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if value is True else [flag, str(value)]
    if options.goodput:
        words += ["--goodput", " ".join(options.goodput)]
    return shlex.join(words)
