"""What a model's output consists of: text, and calls of tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Text:
    """More text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins."""

    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the JSON text that is the begun call's arguments."""

    text: str


Part = Text | CallStart | CallArguments


class Reader(Protocol):
    """Takes an output's text apart, piece by piece, however it was cut into pieces."""

    def push(self, text: str) -> list[Part]:
        """The parts that are sure by now; what may still become something else is held back."""

    def flush(self) -> list[Part]:
        """What was held back, once no more text comes."""


class PlainReader:
    """Everything is text."""

    def push(self, text: str) -> list[Part]:
        return [Text(text)] if text else []

    def flush(self) -> list[Part]:
        return []
