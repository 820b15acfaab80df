"""What a target's API is like: how it is asked, and how it answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from headway.compare.client import EventReader
from headway.compare.record import RequestRecord
from headway.compare.target import Ask, Call


class AnswerReader(EventReader, Protocol):
    """Fills a record, its text included, and gathers the calls of tools."""

    @property
    def calls(self) -> list[Call]: ...


@dataclass(frozen=True, slots=True)
class Manner:
    """How a target is asked besides the question: as which model, at which tier or speed (None: the API's default), and
    without which of the optional fields, because it refused them."""

    model: str
    variant: str | None = None
    left_out: Collection[str] = ()


class Dialect(Protocol):
    @property
    def optional(self) -> tuple[str, ...]:
        """Fields that an API may refuse and that the question can do without."""

    def headers(self, key: str | None, variant: str | None) -> dict[str, str]: ...

    def body(self, ask: Ask, manner: Manner) -> dict[str, Any]:
        """Of a streamed request."""

    def reader(self, record: RequestRecord) -> AnswerReader: ...
