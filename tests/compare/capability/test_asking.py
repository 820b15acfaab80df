"""Asking: bounded, resumable, and what fails is never wrong."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from headway.compare.capability.asking import GIVE_UP_AFTER, Asking, Column, Work
from headway.compare.capability.figures import ALL, figures_of
from headway.compare.capability.journal import AnswerJournal
from headway.compare.capability.outcome import judge
from headway.compare.progress import Silent
from headway.compare.suites import arithmetic
from headway.compare.target import Price
from headway.errors import UsageError

from .asked import Oracle

HEADING = {"seed": 1}


def work(count: int = 10) -> Work:
    return [("arithmetic", task) for task in arithmetic.SUITE.tasks(1, count)]


def adds(prompt: str) -> str:
    """What can add, and nothing else."""
    found = re.search(r"(\d+) \+ (\d+)\?", prompt)
    return str(int(found[1]) + int(found[2])) if found else "?"


def run(columns: list[Column], tasks: Work, journal: AnswerJournal | None = None, stop_after: float | None = None) -> None:
    async def go() -> None:
        interrupted = asyncio.Event()
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, interrupted.set)
        await Asking(tasks, journal or AnswerJournal(None, {}), Silent(), interrupted).run(columns)

    asyncio.run(go())
    for column in columns:
        judge(column.outcomes)


def test_every_task_is_asked_once_and_no_more_than_so_many_at_once() -> None:
    oracle = Oracle(adds, seconds=0.01)
    column = Column(oracle, streams=3)
    run([column], work(20))
    assert oracle.at_once == 3
    assert [outcome.task.id for outcome in column.outcomes] == [task.id for _, task in work(20)]
    assert len(oracle.asked) == 20


def test_figures_are_joined_from_answers_seconds_and_prices() -> None:
    column = Column(Oracle(adds, price=Price(input=1.0, output=10.0)))
    run([column], work(10))
    cell = figures_of(column, ["arithmetic"]).cells["arithmetic"]
    right = sum(cell.right)
    assert 2 <= right <= 4  # sums of one digit twice, and perhaps of two digits
    assert cell.seconds == 1.0
    assert cell.seconds_per_right == pytest.approx(10 / right)
    assert cell.price_per_right == pytest.approx(10 * (100 * 1.0 + 10 * 10.0) / 1e6 / right)
    assert cell.levels[0] == (1, 2, 2)
    assert cell.levels[4] == (5, 0, 2)


def test_a_failure_of_the_api_is_neither_right_nor_wrong() -> None:
    column = Column(Oracle(lambda prompt: None if "*" in prompt else adds(prompt)))
    run([column], work(10))
    cell = figures_of(column, ["arithmetic"]).cells[ALL]
    assert cell.failed == 4  # levels 4 and 5 multiply
    assert len(cell.right) == 6
    assert cell.reasons == ("HTTP 500: made to fail",)


def test_an_api_that_only_fails_is_given_up() -> None:
    oracle = Oracle(lambda prompt: None)
    column = Column(oracle, streams=1)
    run([column], work(60))
    assert len(oracle.asked) == GIVE_UP_AFTER
    assert column.gave_up is not None and "made to fail" in column.gave_up


def test_a_second_run_asks_only_what_the_first_left(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    first = Column(Oracle(lambda prompt: None if "*" in prompt else adds(prompt)))
    journal = AnswerJournal(path, HEADING)
    run([first], work(10), journal)
    journal.close()
    path.write_bytes(path.read_bytes() + b'{"target": "orac')  # cut short
    second = Column(Oracle(adds))
    again = AnswerJournal(path, HEADING)
    run([second], work(10), again)
    again.close()
    assert isinstance(second.target, Oracle)
    assert len(second.target.asked) == 4
    assert all("*" in prompt for prompt in second.target.asked)
    third = Column(Oracle(adds))
    run([third], work(10), AnswerJournal(path, HEADING))
    assert isinstance(third.target, Oracle)
    assert third.target.asked == []
    assert figures_of(third, ["arithmetic"]).cells == figures_of(second, ["arithmetic"]).cells


def test_an_interrupt_keeps_what_was_answered() -> None:
    column = Column(Oracle(adds, seconds=0.02), streams=1)
    run([column], work(200), stop_after=0.2)
    assert 0 < len(column.outcomes) < 200
    assert all(outcome.verdict is not None for outcome in column.outcomes)


@pytest.mark.parametrize("content", ['{"other": 1}\n', "text\n", "[1]\n", '{"headway_answers": 1, "seed": 2}\n'])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(UsageError, match="--journal"):
        AnswerJournal(path, HEADING)
    assert path.read_text() == content
