"""Answers on disk, as they come: what an interrupt leaves, and what a second run goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headway.compare.capability.outcome import Outcome
from headway.compare.journal_file import JournalFile
from headway.compare.speed.journal import record_from_json, record_to_json
from headway.compare.target import Answer, Call


class AnswerJournal(JournalFile):
    """Of answers: a line for each task that was answered. Tasks that an API failed on are not kept: a second run asks them
    again. Answers are kept, not verdicts, so that a check can be mended afterwards."""

    KEY = "headway_answers"
    WHAT = "answers"
    OTHER = "other tasks"

    def __init__(self, path: Path | None, heading: Mapping[str, Any]) -> None:
        self._known: dict[tuple[str, str], list[Answer]] = {}
        super().__init__(path, heading)

    def answers(self, target: str, task_id: str) -> list[Answer] | None:
        """Of an earlier run; None if it has none."""
        return self._known.get((target, task_id))

    def note(self, target: str, outcome: Outcome) -> None:
        """A task that was asked; kept if it was answered."""
        if self._keeps and outcome.failure is None:
            answers = [_to_json(answer) for answer in outcome.answers]
            self._write({"target": target, "task": outcome.task.id, "answers": answers})

    def _take(self, line: dict[str, Any]) -> None:
        self._known[line["target"], line["task"]] = [_from_json(answer) for answer in line["answers"]]


def _to_json(answer: Answer) -> dict[str, Any]:
    record = record_to_json(answer.record, answer.record.intended)
    return {"text": answer.text, "calls": [asdict(call) for call in answer.calls], "record": record}


def _from_json(line: dict[str, Any]) -> Answer:
    return Answer(record_from_json(line["record"]), line["text"], [Call(**call) for call in line["calls"]])
