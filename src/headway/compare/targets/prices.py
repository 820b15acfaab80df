"""What a million tokens cost at each target, by a file of the user's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from headway.compare.record import RequestRecord
from headway.compare.target import Price
from headway.compare.targets.name import TargetName
from headway.config import PricesSettings
from headway.errors import UsageError
from headway.modes import ModeName

MILLION = 1_000_000


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)


_FILE: TypeAdapter[dict[str, _Row | str]] = TypeAdapter(dict[str, _Row | str])


class PriceList:
    """Of a file, for the targets that it names; else of the settings, for headway's own modes."""

    def __init__(self, rows: Mapping[str, Price], currency: str, modes: Mapping[ModeName, Price] | None = None) -> None:
        self.currency = currency
        self._rows = rows
        self._modes = modes or {}

    @classmethod
    def of(cls, settings: PricesSettings, file: Path | None = None) -> PriceList:
        """The settings' prices and the file's, which go first. Raises UsageError that names file, target and key."""
        modes = {}
        if settings.input or settings.output:
            modes = {mode: _times(settings, getattr(settings.multiplier, mode)) for mode in ModeName}
        if file is None:
            return cls({}, settings.currency, modes)
        rows, currency = _read(file)
        return cls(rows, currency or settings.currency, modes)

    def of_target(self, name: TargetName) -> Price | None:
        """By the target's name as the user wrote it, else without what names its speed at a price of its own."""
        found = self._rows.get(name.text)
        if found is None and name.mode is not None:
            return self._modes.get(name.mode)
        return found


def cost(price: Price, records: list[RequestRecord]) -> float | None:
    """Of the requests whose tokens are known, in the price's currency. None if there is none."""
    known = [r for r in records if r.prompt_tokens is not None and r.output_tokens is not None]
    if not known:
        return None
    of_cached = price.input if price.cached is None else price.cached
    total = 0.0
    for record in known:
        cached = record.cached_tokens or 0
        total += ((record.prompt_tokens or 0) - cached) * price.input + cached * of_cached
        total += (record.output_tokens or 0) * price.output
    return total / MILLION


def _times(settings: PricesSettings, multiplier: float) -> Price:
    cached = None if settings.cached_input is None else settings.cached_input * multiplier
    return Price(settings.input * multiplier, settings.output * multiplier, cached)


def _read(file: Path) -> tuple[dict[str, Price], str | None]:
    try:
        tree = _FILE.validate_python(tomllib.loads(file.read_bytes().decode("utf-8-sig")))
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"] if part not in ("str", "_Row")]
        raise UsageError(f'{file}: ["{place[0]}"] {".".join(place[1:])}: {first["msg"].lower()}') from None
    rows = {name: row for name, row in tree.items() if isinstance(row, _Row)}
    words = {name: text for name, text in tree.items() if isinstance(text, str)}
    if unknown := next((name for name in words if name != "currency"), None):
        raise UsageError(f'{file}: unknown key {unknown}; a target\'s prices stand in a section, such as ["{unknown}"]')
    return {name: Price(row.input, row.output, row.cached_input) for name, row in rows.items()}, words.get("currency")
