"""A measurement's requests on disk, as they end: what an interrupt leaves, and what a second run goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from headway.compare.journal_file import JournalFile
from headway.compare.record import RequestRecord, ServedBy
from headway.modes import ModeName

_NOT_KEPT = {"text", "tokens", "served_by", "mode"}
_KEPT = [f.name for f in fields(RequestRecord) if f.name not in _NOT_KEPT]


@dataclass(slots=True)
class Past:
    """What is known of a point. records: by their number in it, times counting from its beginning. seconds: how long it has
    been measured. is_done: nothing is left to do."""

    records: dict[int, RequestRecord] = field(default_factory=dict)
    seconds: float = 0.0
    is_done: bool = False


class Journal(JournalFile):
    """Of a load: a line for each request that has ended, and one for each time that a point was left."""

    KEY = "headway_load"
    WHAT = "a load"
    OTHER = "another measurement"

    def __init__(self, path: Path | None, heading: Mapping[str, Any]) -> None:
        self._past: dict[int, Past] = {}
        super().__init__(path, heading)

    def past(self, point: int) -> Past:
        return self._past.setdefault(point, Past())

    def note(self, point: int, number: int, record: RequestRecord, begin: float) -> None:
        """A request that has ended, or was cut off. begin: of its point, by the record's clock."""
        if self._keeps:
            self._write({"point": point, "number": number, "record": record_to_json(record, begin)})

    def leave(self, point: int, seconds: float, *, is_done: bool) -> None:
        if self._keeps:
            self._write({"point": point, "seconds": round(seconds, 6), "done": is_done})

    def _take(self, line: dict[str, Any]) -> None:
        past = self.past(line["point"])
        if "record" in line:
            record = record_from_json(line["record"])
            past.records[line["number"]] = record
            past.seconds = max(past.seconds, record.finished or 0.0)  # if it never came to a line of its own
        else:
            past.seconds, past.is_done = line["seconds"], line["done"]


def relative(record: RequestRecord, begin: float) -> RequestRecord:
    """The record itself, its times counting from `begin`."""
    record.intended -= begin
    record.started -= begin
    record.chunk_times[:] = [time - begin for time in record.chunk_times]
    record.finished = None if record.finished is None else record.finished - begin
    return record


def record_to_json(record: RequestRecord, begin: float) -> dict[str, Any]:
    """A record as plain data, without its text. begin: what its times count from there."""
    line = {name: value for name in _KEPT if (value := getattr(record, name)) is not None}
    line["mode"] = record.mode.value
    for name in ("intended", "started", "finished"):
        if name in line:
            line[name] = round(line[name] - begin, 6)
    line["chunk_times"] = [round(time - begin, 6) for time in record.chunk_times]
    if (served := record.served_by) is not None:
        line["served_by"] = [served.mode, served.pace, served.attainment, served.engine_seconds]
    return line


def record_from_json(line: dict[str, Any]) -> RequestRecord:
    """What record_to_json made. Raises KeyError, TypeError or ValueError for anything else."""
    served = line.pop("served_by", None)
    record = RequestRecord(ModeName(line.pop("mode")), line.pop("intended"), line.pop("started"))
    for name, value in line.items():
        setattr(record, name, value)
    record.served_by = None if served is None else ServedBy(*served)
    return record
