"""Answers on disk, as they come: what an interrupt leaves, and what a second run goes on from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from headway.compare.capability.outcome import Outcome
from headway.compare.speed.journal import record_from_json, record_to_json
from headway.compare.target import Answer, Call
from headway.errors import UsageError

HEADING = "headway_answers"
FORMAT = 1


class AnswerJournal:
    """JSON lines: a heading, which says what is asked, then a line for each task that was answered. Tasks that an API failed on
    are not kept: a second run asks them again. Answers are kept, not verdicts, so that a check can be mended afterwards.

    path: None keeps nothing. heading: what must be the same for a run to go on with another's. Raises UsageError if the file
    can't be read or written, or belongs to another run.
    """

    def __init__(self, path: Path | None, heading: Mapping[str, Any]) -> None:
        self._known: dict[tuple[str, str], list[Answer]] = {}
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
            self._write({HEADING: FORMAT, **heading})

    def answers(self, target: str, task_id: str) -> list[Answer] | None:
        """Of an earlier run; None if it has none."""
        return self._known.get((target, task_id))

    def note(self, target: str, outcome: Outcome) -> None:
        """A task that was asked; kept if it was answered."""
        if self._file is not None and outcome.failure is None:
            answers = [_to_json(answer) for answer in outcome.answers]
            self._write({"target": target, "task": outcome.task.id, "answers": answers})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def _read(self, path: Path, heading: Mapping[str, Any]) -> None:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        try:
            known = json.loads(lines[0])
            if known.pop(HEADING) != FORMAT:
                raise KeyError(HEADING)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise UsageError(f"--journal: {path} is no journal of answers") from None
        if known != json.loads(json.dumps(heading)):
            raise UsageError(f"--journal: {path} is of other tasks; go on with the same settings, or name another file")
        for text in lines[1:]:
            try:
                line = json.loads(text)
                self._known[line["target"], line["task"]] = [_from_json(answer) for answer in line["answers"]]
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # a line that was cut short; the next run began a new one behind it


def _to_json(answer: Answer) -> dict[str, Any]:
    record = record_to_json(answer.record, answer.record.intended)
    return {"text": answer.text, "calls": [asdict(call) for call in answer.calls], "record": record}


def _from_json(line: dict[str, Any]) -> Answer:
    return Answer(record_from_json(line["record"]), line["text"], [Call(**call) for call in line["calls"]])
