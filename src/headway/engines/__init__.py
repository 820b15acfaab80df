"""Engines by name. A new one is a file here and a line in ENGINES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headway.config import EngineSettings
from headway.engines.base import Engine


def _openvino() -> Callable[..., Engine]:
    from headway.engines.openvino import OpenVINOEngine

    return OpenVINOEngine


ENGINES: dict[str, Callable[[], Callable[..., Engine]]] = {"openvino": _openvino}
"""What imports an engine, which loads a large library, and gives its class."""


def open_engine(
    folder: Path,
    settings: EngineSettings,
    context_length: int,
    max_context_tokens: int,
    head: Path | None = None,
    taps: Sequence[int] = (),
) -> Engine:
    """Load the model in `folder` with the engine that the settings name, and its draft head, if it has one.

    context_length: the model's own limit in tokens. max_context_tokens: what all seats together could fill; the KV pool gets no
    larger unless the settings say so. taps: the layers, from 0, that `Engine.features` reads; a draft head brings its own.
    """
    return ENGINES[settings.name]()(folder, settings, context_length, max_context_tokens, head, taps)
