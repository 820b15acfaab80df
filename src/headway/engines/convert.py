"""GGUF to OpenVINO IR, once per file, OpenVINO version and weight layout.

The work is done in a process of its own (`python -m headway.engines.convert`): a reader that dies on a strange file takes
nobody with it, and the memory it needed is given back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from headway.catalog.gguf_copy import is_readable, readable_copy
from headway.errors import ModelError, UsageError

GRAPH = "openvino_model.xml"
LEFTOVER_SECONDS = 6 * 3600
LAYOUT = 4
"""Raised when the form of what is cached changes."""


@dataclass(frozen=True, slots=True)
class Smoothing:
    """That the model shall be prepared for larger groups of activations (see smooth.py), of at most `largest_group` channels.
    required: a model that can't be is an error, else it stays as it is. prompts: gives their tokens, some thousand in all, to
    calibrate on."""

    largest_group: int
    required: bool
    prompts: Callable[[], Sequence[Sequence[int]]]


def converted(gguf: Path, sha256: str, weights: str, cache: Path, *, smoothing: Smoothing | None = None) -> Path:
    """The folder with the IR of `gguf`, converted now if it isn't in `cache` yet. Raises ModelError if the file can't be
    converted, UsageError if the cache can't be written."""
    form = weights if smoothing is None else f"{weights}-groups{smoothing.largest_group}"
    folder = cache / f"{sha256[:16]}-{form}-v{LAYOUT}-openvino-{version('openvino')}"
    if (folder / GRAPH).exists():
        return folder
    try:
        _convert_into(folder, gguf, weights, cache, smoothing)
    except OSError as error:
        hint = "set HEADWAY_HOME to a folder that can be written to"
        raise UsageError(f"the cache folder {cache} can't be used: {error.strerror or error}; {hint}") from None
    return folder


def _convert_into(folder: Path, gguf: Path, weights: str, cache: Path, smoothing: Smoothing | None) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(cache)
    # A name in plain ASCII for the reader, whatever the file is called; and a folder that becomes visible only when complete.
    with tempfile.TemporaryDirectory(prefix="converting-", dir=cache) as scratch:
        work = Path(scratch) / "ir"
        work.mkdir()
        source = Path(scratch) / "model.gguf"
        original = Path(scratch) / "original.gguf"
        original.symlink_to(gguf.resolve())
        if weights != "int8" or _is_readable(original):
            source.symlink_to(gguf.resolve())
        else:
            readable_copy(original, source)
        command = [sys.executable, "-m", "headway.engines.convert", str(source), str(original), str(work), weights]
        if smoothing is not None:
            how = Path(scratch) / "smoothing.json"
            prompts = [list(tokens) for tokens in smoothing.prompts()]
            how.write_text(json.dumps([smoothing.largest_group, smoothing.required, prompts]))
            command.append(str(how))
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0 or not (work / GRAPH).exists():
            raise ModelError(f"{gguf} can't be converted for OpenVINO: {_reason(done)}")
        try:
            work.rename(folder)
        except OSError:  # another process was quicker
            if not (folder / GRAPH).exists():
                raise


def _is_readable(gguf: Path) -> bool:
    """What is broken is left to the reader, which says so."""
    try:
        return is_readable(gguf)
    except (ValueError, KeyError, IndexError, OSError):
        return True


def _remove_leftovers(cache: Path) -> None:
    """Scratch folders of processes that were killed in mid-conversion, which takes minutes at the most."""
    for scratch in cache.glob("converting-*"):
        if time.time() - scratch.stat().st_mtime > LEFTOVER_SECONDS:
            shutil.rmtree(scratch, ignore_errors=True)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"the reader died of signal {-done.returncode}"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"the reader stopped with exit code {done.returncode}"


def _convert(gguf: Path, original: Path, folder: Path, weights: str, smoothing: Path | None) -> None:
    import openvino as ov
    import openvino_genai

    from headway.engines.shortlist import output_tokens, restrict
    from headway.engines.smooth import smooth
    from headway.engines.weights import repair

    # The pipeline writes the graph and the tokenizer beside the file it reads.
    openvino_genai.LLMPipeline(str(gguf), "CPU", enable_save_ov_model=True)
    written = gguf.parent
    if weights == "int8":
        model = ov.Core().read_model(written / GRAPH)
        largest_group, required, prompts = json.loads(smoothing.read_text()) if smoothing is not None else (0, False, [])
        products = repair(model, original, everything=required)
        if prompts and products:
            try:
                smooth(model, products, prompts, largest_group)
            except ModelError:
                if required:
                    raise
        if tokens := output_tokens(original):
            restrict(model, tokens)
        ov.save_model(model, folder / GRAPH, compress_to_fp16=False)
        del model
        for name in (GRAPH, "openvino_model.bin"):
            (written / name).unlink()
    for path in written.glob("openvino_*"):
        shutil.move(path, folder / path.name)
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


if __name__ == "__main__":
    try:
        given, kind, *how_to = [Path(word) for word in sys.argv[1:4]], sys.argv[4], *sys.argv[5:]
        _convert(given[0], given[1], given[2], kind, Path(how_to[0]) if how_to else None)
    except ModelError as error:
        sys.exit(str(error))
