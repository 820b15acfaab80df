"""`headway compare`: standard beside fast, measured."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from headway.catalog.known import spark_of
from headway.compare.embedded import running, serve_command
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, print_report, to_json, write_json
from headway.compare.result import CompareResult
from headway.compare.run import compare
from headway.errors import UsageError

DEFAULT_MODEL = "smollm2"
DEFAULT_STREAMS = 32
DEFAULT_SECONDS = 60.0
MIN_SECONDS = 1.0
NO_SPARK = "none"

_T = TypeVar("_T")


def compare_command(
    *,
    model: str | None = None,
    url: str | None = None,
    spark: str | None = None,
    streams: int = DEFAULT_STREAMS,
    seconds: float = DEFAULT_SECONDS,
    json_path: Path | None = None,
) -> None:
    """Measure standard and fast, print a table, and write JSON if a path is given (`-` = stdout, and the table to stderr).

    Without a URL a server is started for the purpose, with seats for all streams. spark: of that server; None = the one known
    for the model, "none" = none. seconds: of measured windows; the whole takes about half as long again, and the server's
    start.
    Raises HeadwayError (one line) for whatever the user can mend.
    """
    if streams < 1:
        raise UsageError(f"--streams must be at least 1, not {streams}")
    if not MIN_SECONDS <= seconds < float("inf"):
        raise UsageError(f"--seconds must be at least {MIN_SECONDS:g}, not {seconds:g}")
    if spark is not None and url is not None:
        raise UsageError("--spark is of a server that is started for the comparison; the one at --url has its own, if any")
    check_json_path(json_path)
    command = _command(model, url, spark, streams, seconds)
    with Bar(Console(stderr=True)) as bar:
        if url is not None:
            result = run_async(compare(url, model, streams=streams, seconds=seconds, reporter=bar))
        else:
            name = model or DEFAULT_MODEL
            result = _compare_embedded(name, spark_of(name) if spark is None else spark, streams, seconds, bar)
    print_report(result, Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(to_json(result, command), json_path)


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run on uvloop where there is one: its loop costs the measured machine half as much per chunk."""
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop

    return uvloop.run(work)


def _compare_embedded(model: str, spark: str | None, streams: int, seconds: float, bar: Bar) -> CompareResult:
    with running(serve_command(model, streams, None if spark == NO_SPARK else spark)) as server:
        url = server.wait_ready(bar)
        result = run_async(compare(url, streams=streams, seconds=seconds, reporter=bar))
        server.check()
        return result


def _command(model: str | None, url: str | None, spark: str | None, streams: int, seconds: float) -> str:
    words = ["headway", "compare"]
    if model is not None:
        words.append(shown_model(model))
    if url is not None:
        words += ["--url", url]
    if spark is not None:
        words += ["--spark", shown_model(spark)]
    words += ["--streams", str(streams), "--seconds", f"{seconds:g}"]
    return shlex.join(words)


def shown_model(model: str) -> str:
    """A report names no folder of its author."""
    return Path(model).name if Path(model).is_absolute() else model
