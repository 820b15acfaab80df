"""Code that a model wrote, run apart: in a process of its own, with little of everything, and without a network.

What holds it: a process group of its own, killed as a whole when its time is over; limits of processor time, memory, file size
and open files; an empty folder as its working directory; an isolated Python (`-I`) without the environment; an audit hook that
refuses files outside the standard library, processes, sockets and foreign functions; and, where the kernel lets a user have
namespaces of their own (Linux, `unshare`), no network, and no processes that outlive it. It is made for the mistakes of models
and for their tricks, not for a determined attacker: run comparisons of models that you don't trust in a container.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 4.0
OUTPUT_BYTES = 64 * 1024
_NAMESPACES = ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")

# Runs in the child. What is expected never comes here, so that nothing in the code can look it up.
_CHILD = r"""
import builtins, json, os, sys
try:
    import resource
    for name, limit in (("CPU", 3), ("AS", 512 << 20), ("FSIZE", 1 << 20), ("NOFILE", 32), ("CORE", 0)):
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (limit, limit))
except ImportError:
    pass
job = json.load(sys.stdin)
out = os.fdopen(os.dup(1), "w")
null = os.open(os.devnull, os.O_RDWR)
for fd in (0, 1, 2):
    os.dup2(null, fd)
library = tuple({os.path.realpath(path) for path in sys.path if path})
here = os.getcwd()
BANNED = ("subprocess.", "socket.", "ctypes.", "os.", "shutil.", "pty.", "signal.", "urllib.", "mmap.", "sqlite3.", "fcntl.")
FINE = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "os.fwalk", "os.walk")
def hook(event, args, library=library, here=here, BANNED=BANNED, FINE=FINE, realpath=os.path.realpath, fspath=os.fspath,
         isinstance=isinstance, int=int, tuple=tuple):
    if event == "open":
        path, mode, flags = args
        if isinstance(path, int):
            return
        place = realpath(fspath(path))
        place = place.decode() if isinstance(place, bytes) else place
        writes = flags & 3 or (isinstance(mode, str) and any(letter in mode for letter in "wax+"))
        if place.startswith(here + "/") or (not writes and place.startswith(library)):
            return
        raise PermissionError("no files here")
    if event.startswith(BANNED) and event not in FINE:
        raise PermissionError("not here: " + event)
answer = {"fault": None, "results": []}
sys.addaudithook(hook)
try:
    space = {"__name__": "answer"}
    exec(compile(job["code"], "answer.py", "exec"), space)
    function = space.get(job["function"])
    if not callable(function):
        answer["fault"] = "there is no function " + job["function"]
    else:
        for arguments in job["calls"]:
            answer["results"].append(function(*arguments))
except BaseException as error:
    answer["fault"] = type(error).__name__ + ": " + str(error)[:200]
try:
    text = json.dumps(answer)
except BaseException:
    text = json.dumps({"fault": "the result is no plain data", "results": []})
out.write(text)
out.flush()
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """results: what each call returned, as JSON has it (a tuple is a list). fault: why there are none; None if there are."""

    results: tuple[Any, ...] = ()
    fault: str | None = None


def run(code: str, function: str, calls: Sequence[Sequence[Any]], seconds: float = SECONDS) -> Ran:
    """Define what the code defines and call its function with each of these lists of arguments."""
    with tempfile.TemporaryDirectory(prefix="headway-code-") as folder:
        process = subprocess.Popen(
            [*_apart(), sys.executable, "-I", "-S", "-B", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            job = json.dumps({"code": code, "function": function, "calls": [list(call) for call in calls]})
            said, _ = process.communicate(job.encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            return Ran(fault=f"it took over {seconds:g} s")
        finally:
            _kill(process)
    if not said:
        return Ran(fault=f"it ended without a result (status {process.returncode})")
    return _read(said, len(calls))


def _read(said: bytes, calls: int) -> Ran:
    if len(said) > OUTPUT_BYTES:
        return Ran(fault="its results are too long")
    try:
        answer = json.loads(said)
        fault, results = answer["fault"], answer["results"]
    except (ValueError, KeyError, TypeError):
        return Ran(fault="it wrote into the results")
    if fault is not None:
        return Ran(fault=str(fault))
    if not isinstance(results, list) or len(results) != calls:
        return Ran(fault="it wrote into the results")
    return Ran(tuple(results))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


@functools.cache
def _apart() -> tuple[str, ...]:
    """The beginning of a command that runs without a network, if that can be had here; else nothing."""
    unshare = shutil.which("unshare") if sys.platform == "linux" else None
    if unshare is None:
        return ()
    command = (unshare, *_NAMESPACES)
    tried = subprocess.run([*command, sys.executable, "-I", "-S", "-c", ""], capture_output=True, check=False)
    return command if tried.returncode == 0 else ()


def has_no_network() -> bool:
    """Whether code runs in namespaces of its own here."""
    return bool(_apart())
