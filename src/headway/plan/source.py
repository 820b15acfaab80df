"""A model as a user names it: in the catalogue, a config.json or its folder, or a GGUF file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from headway.catalog.resolve import find_here
from headway.errors import ModelError, UsageError
from headway.plan.config_json import read_config
from headway.plan.gguf_shape import read_gguf
from headway.plan.known import find, known_shape, nearest
from headway.plan.quantized import MXFP4, NAMED, named_bits
from headway.plan.shape import ModelShape


def read_model(name: str) -> ModelShape:
    """The shape of a model. Raises HeadwayError (one line) if it can't be had."""
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        return read_gguf(path)
    if path.suffix == ".json" or path.is_dir():
        return read_config(path, path.parent.name if path.suffix == ".json" else path.name)
    if find(name) is not None:
        return known_shape(name)
    with suppress(ModelError):
        here = find_here(name)
        if here is not None and here.path.suffix == ".gguf":
            return read_gguf(here.path)
    raise UsageError(f"model {name!s:.80} isn't known{nearest(name)}")


def in_precision(shape: ModelShape, precision: str | None) -> ModelShape:
    """The model in a precision asked for by name; as it is without one. Raises UsageError for an unknown name."""
    if precision is None:
        return shape
    if precision not in NAMED:
        raise UsageError(f"precision {precision!s:.20} isn't known; known are {', '.join(NAMED)}")
    native = shape.bits.experts == MXFP4 and precision in {"fp4", "mxfp4"}
    return shape.with_bits(named_bits(precision, has_experts=shape.experts is not None, mxfp4_experts=native))
