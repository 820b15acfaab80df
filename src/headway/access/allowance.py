"""How much each key may have: numbers out of the settings, nothing counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headway.config import KeySettings, LimitSettings, LimitsSettings
from headway.errors import RequestError
from headway.modes import ModeName


class Kind(StrEnum):
    """What is limited, by the names that the settings have for it."""

    REQUESTS = "requests"
    INPUT = "input_tokens"
    OUTPUT = "output_tokens"

    @property
    def words(self) -> str:
        return self.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Window:
    """A limit at this moment. reset: seconds until there is more; 0 where all of it is left."""

    limit: int
    remaining: int
    reset: float


class OverLimit(RequestError):
    """kind: what there is too little of; windows: all that is limited. hopeless: it would be refused at the beginning of a
    minute too."""

    def __init__(
        self, message: str, wait: float, kind: Kind, windows: Mapping[Kind, Window], *, hopeless: bool = False
    ) -> None:
        super().__init__(429, message, code="rate_limit_exceeded", retry_after=wait)
        self.kind = kind
        self.windows = windows
        self.hopeless = hopeless


class Allowance:
    """The limits a minute of every key, and of those who come without one."""

    def __init__(self, everybody: LimitsSettings, keys: Mapping[str, KeySettings]) -> None:
        self._everybody = {mode: _given(_of(everybody, mode)) for mode in ModeName}
        self._own = {(name, mode): _own(key, mode) for name, key in keys.items() for mode in ModeName}

    def limits(self, name: str, mode: ModeName) -> dict[Kind, int]:
        """What is limited for the key of this name ("": none); its own limits stand before everybody's."""
        return self._everybody[mode] | self._own.get((name, mode), {})

    @property
    def unlimited(self) -> bool:
        """Nothing is limited for anybody."""
        return not any(self._everybody.values()) and not any(self._own.values())


def _own(key: KeySettings, mode: ModeName) -> dict[Kind, int]:
    return _given(_of(key, mode)) if mode in key.modes else {Kind.REQUESTS: 0}


def _of(settings: LimitsSettings | KeySettings, mode: ModeName) -> LimitSettings:
    limits: LimitSettings = getattr(settings, mode)
    return limits


def _given(settings: LimitSettings) -> dict[Kind, int]:
    given = settings.model_dump(exclude_none=True)
    return {kind: given[kind] for kind in Kind if kind in given}
