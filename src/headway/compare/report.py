"""The comparison for people (a table) and for programs (JSON)."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.compare.machine import describe, machine_facts, versions
from headway.compare.prompts import PROMPTS
from headway.compare.result import CompareResult, SparkResult, mode_json, phase_json, rounded, spark_json
from headway.compare.run import LOAD_TEMPERATURE
from headway.compare.stats import ratio
from headway.errors import UsageError
from headway.modes import ModeName

STDOUT = Path("-")
UNKNOWN = "-"


def to_json(result: CompareResult, command: str) -> dict[str, Any]:
    """The report as plain data; unknown figures are None. command: as the user could type it again."""
    schedule = result.schedule
    texts = result.same_text
    return {
        "machine": machine_facts(),
        "versions": versions(),
        "command": command,
        "model": result.model,
        "load": {
            "standard_streams": schedule.streams,
            "fast_streams": 1,
            "max_tokens": schedule.max_tokens,
            "prompts": len(PROMPTS),
            "temperature": LOAD_TEMPERATURE,
            "warm_up_seconds": schedule.warm_up,
            "settle_seconds": schedule.settle,
            "window_seconds": schedule.window,
            "windows_per_phase": schedule.pairs,
        },
        "modes": {mode.value: mode_json(result, mode) for mode in result.modes},
        "spark": None if result.spark is None else spark_json(result.spark),
        "total_tokens_per_second": {
            "alone": rounded(result.total_tokens_per_second("alone")),
            "with_fast": rounded(result.total_tokens_per_second("with_fast")),
        },
        "fast_requests_served_as_fast": result.fast_served,
        "same_text": texts.same,
        "same_text_details": asdict(texts),
        "engine_busy": {
            "alone": rounded(result.engine_busy("alone")),
            "with_fast": rounded(result.engine_busy("with_fast")),
        },
        "notes": result.notes(),
        "samples": {
            "alone": phase_json(result, "alone") | {"standard": asdict(result.alone)},
            "with_fast": phase_json(result, "with_fast"),
        },
    }


def check_json_path(path: Path | None) -> None:
    """Before anything is measured: raises UsageError if there is no such folder."""
    if path is not None and path != STDOUT and not path.parent.is_dir():
        raise UsageError(f"--json: the folder {path.parent} doesn't exist")


def write_json(report: dict[str, Any], path: Path) -> None:
    """Write the report to a file, or to stdout if the path is `-`. Raises UsageError if the file can't be written."""
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if path == STDOUT:
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error


def print_report(result: CompareResult, console: Console) -> None:
    """The table and the lines below it."""
    streams = result.schedule.streams
    lines = [
        f"Tokens/s in all: {rate(result.total_tokens_per_second('alone'))} alone, "
        f"{rate(result.total_tokens_per_second('with_fast'))} with fast ({share(result.share_kept())} kept)",
        f"Same text: {_same_text(result)}",
        f"Engine busy: {share(result.engine_busy('alone'))} alone, {share(result.engine_busy('with_fast'))} with fast",
        f"Load: {streams} standard stream{'s' * (streams > 1)}, and one fast stream in every second window of "
        f"{result.schedule.window:.1f} s; {result.schedule.max_tokens} tokens each",
        f"Model: {result.model}",
        f"Machine: {describe(machine_facts())}",
        *(f"Note: {note}" for note in result.notes()),
    ]
    tables = [_table(result)]
    if result.spark is not None:
        tables.append(_shared_table(result.spark))
        lines = [*_spark_lines(result.spark), *lines]
    console.print(Group(*tables, *(Text(line) for line in lines)))


def _spark_lines(spark: SparkResult) -> list[str]:
    over_fast = times(ratio(spark.alone.tokens_per_second, spark.fast_alone.tokens_per_second))
    return [
        f"* {spark.model}, another and weaker model, with the device to itself as it would have a chip of its own: {over_fast} "
        f"of fast with the device to itself ({rate(spark.fast_alone.tokens_per_second)} tokens/s)",
    ]


def _shared_table(spark: SparkResult) -> Table:
    table = Table(title="sharing the device", title_justify="left")
    table.add_column("mode")
    for heading in ("tokens/s per user", "TTFT p50", "TTFT p99", "on time", "errors"):
        table.add_column(heading, justify="right")
    for name, summary in (("standard", spark.standard_beside), ("spark", spark.shared)):
        table.add_row(
            name,
            rate(summary.tokens_per_second),
            milliseconds(summary.ttft_p50),
            milliseconds(summary.ttft_p99),
            share(summary.attainment, digits=1),
            f"{summary.errors}/{summary.requests}",
        )
    return table


def _table(result: CompareResult) -> Table:
    table = Table()
    table.add_column("mode")
    for heading in ("tokens/s per user", "speed", "TTFT p50", "TTFT p99", "on time", "cost", "errors"):
        table.add_column(heading, justify="right")
    for mode in result.modes:
        summary = result.summary(mode)
        table.add_row(
            f"{mode} *" if mode is ModeName.SPARK else mode.value,
            rate(summary.tokens_per_second),
            times(result.speed_x(mode)),
            milliseconds(summary.ttft_p50),
            milliseconds(summary.ttft_p99),
            share(summary.attainment, digits=1),
            times(result.cost_x(mode)),
            f"{summary.errors}/{summary.requests}",
        )
    return table


def _same_text(result: CompareResult) -> str:
    texts = result.same_text
    if texts.same is None:
        return f"unknown ({texts.compared} answers agree, {len(texts.failed)} are missing)"
    extent = f"{texts.compared} answers, compared by {texts.by}"
    if texts.same:
        return f"yes ({extent})"
    first = texts.differences[0]
    return f"no ({len(texts.differences)} of {extent}; first: {first.setting}, {first.unit} {first.position})"


def rate(value: float | None) -> str:
    """Tokens per second."""
    return UNKNOWN if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def times(value: float | None) -> str:
    """A ratio."""
    return UNKNOWN if value is None else f"{value:.2f}x"


def share(value: float | None, digits: int = 0) -> str:
    """A share as a percentage."""
    return UNKNOWN if value is None else f"{value:.{digits}%}"


def milliseconds(seconds: float | None) -> str:
    """Seconds, in whole milliseconds."""
    return UNKNOWN if seconds is None else f"{1000 * seconds:.0f} ms"
