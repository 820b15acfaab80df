"""Ctrl-C in the middle of a measurement: what there is, is kept."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

INTERRUPTED = 130
"""Exit status."""


def end_interrupted(journal: Path | None) -> NoReturn:
    """Say so, and exit. journal: where the rest can be gone on with, if it is kept."""
    hint = "; the same command goes on from there" if journal is not None else ""
    print(f"headway: interrupted{hint}", file=sys.stderr)
    raise SystemExit(INTERRUPTED)


@contextmanager
def interruptible() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C or SIGTERM sets, once; the second one ends the process as usual."""
    interrupted, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def leave() -> None:
        interrupted.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    try:
        for number in numbers:
            loop.add_signal_handler(number, leave)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread: Ctrl-C ends it
        pass
    try:
        yield interrupted
    finally:
        for number in numbers:
            try:
                loop.remove_signal_handler(number)
            except (NotImplementedError, RuntimeError, ValueError):
                break
