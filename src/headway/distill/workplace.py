"""Where a training works: its folders, what has to be there, and how to go on after a stop."""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from headway.distill.gather import Stopped
from headway.errors import UsageError

CHECKPOINT = "checkpoint.pt"


def check_libraries(command: str, names: Sequence[str]) -> None:
    """Those of the extra `distill` that this command needs. Raises UsageError."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            raise UsageError(f"{command} needs {name}, which isn't installed: pip install 'headway[distill]'") from None
        except OSError as error:
            raise UsageError(f"{name} is installed, but can't be loaded ({error}): install it anew") from None


def check_length(**given: float | None) -> None:
    """That one of the ways to say how long a training takes is given, at the most, and that it makes sense; by option."""
    there = {name: value for name, value in given.items() if value is not None}
    if len(there) > 1:
        raise UsageError(
            f"give {' or '.join(f'--{name}' for name in given)}, not {' and '.join(f'--{name}' for name in there)}"
        )
    for name, value in there.items():
        if not 0 < value < float("inf"):
            raise UsageError(f"--{name} must be more than 0, not {value:g}")


def check_checkpoint(work: Path, *, resume: bool) -> None:
    checkpoint = work / CHECKPOINT
    if checkpoint.exists() and not resume:
        raise UsageError(f"{checkpoint} is of a training that was stopped: go on with --resume, or delete it to train anew")


def check_folder(option: str, folder: Path) -> None:
    """That files can be written into it. Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{option}: the folder {folder} doesn't exist")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{option}: {folder} can't be written to")


@contextlib.contextmanager
def alone_in(work: Path, command: str) -> Iterator[None]:
    """The folder exists, and nobody else trains in it. Raises UsageError and OSError."""
    work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(work / "lock", timeout=0):
            yield
    except Timeout:
        raise UsageError(f"another {command} works in {work}: give another --work") from None


@contextlib.contextmanager
def ending_well(work: Path) -> Iterator[None]:
    """Of a command: who stops it is told how to go on, and what the disk refuses is one line. Raises SystemExit(128 + signal)
    and UsageError."""
    try:
        yield
    except Stopped as stopped:
        print(f"headway: stopped {stopped.reached}; go on with: {resume_command()}", file=sys.stderr)
        raise SystemExit(128 + stopped.number) from None
    except OSError as error:
        raise UsageError(f"{error.filename or work} can't be used: {error.strerror or error}") from None


def resume_command() -> str:
    """What to type to go on with what this process was asked for."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return shlex.join(["headway", *words, "--resume"])
