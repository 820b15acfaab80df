"""The table of models: what can be pulled, and what is on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from headway.catalog import hub, wheel
from headway.catalog.known import KNOWN, KnownModel
from headway.catalog.local import open_local
from headway.errors import ModelError


@dataclass(frozen=True, slots=True)
class ModelRow:
    """state: `pulled`, `not pulled` or `damaged`. size: bytes; context_length: tokens; path: where it is, or None."""

    name: str
    state: str
    size: int | None
    context_length: int | None
    licence: str | None
    path: Path | None


def rows() -> list[ModelRow]:
    """Known models by name, then what was pulled from the hub."""
    known = [_known_row(KNOWN[name]) for name in sorted(KNOWN)]
    return known + [_hub_row(str(name), path) for name, path in hub.list_pulled()]


def as_json(models: list[ModelRow]) -> list[dict[str, Any]]:
    """One object a model, ready for json.dumps."""
    return [{**asdict(row), "path": None if row.path is None else str(row.path)} for row in models]


def as_table(models: list[ModelRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("NAME", "STATE", "SIZE", "CONTEXT", "LICENCE", "PATH"):
        table.add_column(heading, justify="right" if heading in ("SIZE", "CONTEXT") else "left", overflow="fold")
    for row in models:
        size = "" if row.size is None else f"{row.size / 1e6:,.0f} MB"
        context = "" if row.context_length is None else str(row.context_length)
        table.add_row(row.name, row.state, size, context, row.licence or "", "" if row.path is None else str(row.path))
    return table


def _known_row(model: KnownModel) -> ModelRow:
    if not wheel.is_pulled(model):
        return ModelRow(model.name, "not pulled", model.size, model.context_length, model.licence, None)
    return ModelRow(model.name, "pulled", model.size, model.context_length, model.licence, model.path)


def _hub_row(name: str, path: Path) -> ModelRow:
    try:
        model = open_local(path)
    except ModelError:
        return ModelRow(name, "damaged", None, None, None, path)
    return ModelRow(name, "pulled", model.size, model.context_length, model.licence, path)
