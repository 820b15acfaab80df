"""JSON lines that are written as things end: what an interrupt leaves, and what a second run goes on from."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TextIO

from headway.errors import UsageError

FORMAT = 1


class JournalFile(ABC):
    """A heading, which says what the journal is of, then lines.

    KEY: of the heading's format; WHAT: that it is a journal of; OTHER: what one with another heading is of, for messages.
    """

    KEY: ClassVar[str]
    WHAT: ClassVar[str]
    OTHER: ClassVar[str]

    def __init__(self, path: Path | None, heading: Mapping[str, Any]) -> None:
        """path: None keeps nothing. heading: what must be the same for a run to go on with another's. What the file has is
        taken at once. Raises UsageError if it can't be read or written, or belongs to another run."""
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            if path.exists() and path.stat().st_size:
                self._read(path, heading)
            self._file = path.open("a", encoding="utf-8")
            if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
                self._file.write("\n")
        except OSError as error:
            raise UsageError(f"--journal: {path}: {error.strerror or error}") from None
        if not path.stat().st_size:
            self._write({self.KEY: FORMAT, **heading})

    @classmethod
    def heading_of(cls, path: Path) -> dict[str, Any] | None:
        """What a journal is of; None if there is no such file, or if it is none of this kind."""
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                heading = json.loads(file.readline())
        except (OSError, ValueError):
            return None
        if not isinstance(heading, dict) or heading.pop(cls.KEY, None) != FORMAT:
            return None
        return heading

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @abstractmethod
    def _take(self, line: dict[str, Any]) -> None:
        """A line of an earlier run. Raises ValueError, KeyError, TypeError or AttributeError for one that can't be used."""

    @property
    def _keeps(self) -> bool:
        """Ask before making a line: without a file nobody should take the time."""
        return self._file is not None

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def _read(self, path: Path, heading: Mapping[str, Any]) -> None:
        known = self.heading_of(path)
        if known is None:
            raise UsageError(f"--journal: {path} is no journal of {self.WHAT}")
        if known != json.loads(json.dumps(heading)):
            raise UsageError(f"--journal: {path} is of {self.OTHER}; go on with the same settings, or name another file")
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
            try:
                self._take(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # a line that was cut short when the machine went down; the next run began a new one behind it
