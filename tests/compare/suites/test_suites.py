"""What all suites have in common."""

from __future__ import annotations

import pytest

from headway.compare.suites import SUITES
from headway.compare.suites.task import Suite, Task

from ..answers import said

HERE = [suite for suite in SUITES if suite.missing() is None]


def asked(task: Task) -> object:
    ask = task.play().ask()
    assert ask is not None
    return ask.messages, ask.tools, ask.schema, ask.max_tokens


@pytest.mark.parametrize("suite", HERE, ids=lambda suite: suite.name)
def test_a_seed_gives_the_same_tasks_and_another_seed_others(suite: Suite) -> None:
    once, again, others = (suite.tasks(seed, 10) for seed in (7, 7, 8))
    assert [asked(task) for task in once] == [asked(task) for task in again]
    assert [asked(task) for task in once] != [asked(task) for task in others]


@pytest.mark.parametrize("suite", HERE, ids=lambda suite: suite.name)
def test_more_tasks_begin_with_the_same_ones(suite: Suite) -> None:
    assert [asked(task) for task in suite.tasks(3, 4)] == [asked(task) for task in suite.tasks(3, 12)[:4]]


@pytest.mark.parametrize("suite", HERE, ids=lambda suite: suite.name)
def test_quick_holds_every_level_and_each_task_has_a_name_of_its_own(suite: Suite) -> None:
    tasks = suite.tasks(0, 20)
    assert {task.level for task in tasks[: suite.quick]} == {task.level for task in tasks}
    assert len({task.id for task in tasks}) == 20
    assert all(task.id.startswith(f"{suite.name}/") for task in tasks)


@pytest.mark.parametrize("suite", [s for s in HERE if s.name not in ("irrelevance",)], ids=lambda suite: suite.name)
@pytest.mark.parametrize("text", ["", "I don't know.", "[]", "```python\n```"])
def test_saying_nothing_is_never_right(suite: Suite, text: str) -> None:
    for task in suite.tasks(1, 10):
        if task.id.startswith("bfcl/irrelevance"):
            continue
        play = task.play()
        play.ask()
        play.take(said(text))
        assert not play.verdict().correct, task.id


def test_suites_have_names_of_their_own() -> None:
    assert len({suite.name for suite in SUITES}) == len(SUITES)
