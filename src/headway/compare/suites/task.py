"""A task: what is asked, in one turn or several, and whether the answers are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from headway.compare.target import Answer, Ask

Judge = Callable[[Answer], "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """fault: what is wrong, None if the answer is right. calls: tool calls that were made; valid_calls: those of a tool that
    exists, with arguments that its schema allows, right or not. steps, survived: of a chain, how many there were to do, and how
    many were done before the first mistake."""

    fault: str | None = None
    calls: int = 0
    valid_calls: int = 0
    steps: int = 0
    survived: int = 0

    @property
    def correct(self) -> bool:
        return self.fault is None


class Play(Protocol):
    """One go at a task."""

    def ask(self) -> Ask | None:
        """What to ask next; None once it is over."""

    def take(self, answer: Answer) -> None:
        """The answer to the last ask, one that the API didn't fail on."""

    def verdict(self) -> Verdict:
        """Once it is over."""


@dataclass(frozen=True, slots=True)
class Task:
    """id: names it among all tasks of its suite and seed. level: its difficulty, from 1."""

    id: str
    level: int
    play: Callable[[], Play]


class Question:
    """A Play of one turn."""

    def __init__(self, ask: Ask, judge: Judge) -> None:
        self._ask = ask
        self._judge = judge
        self._answer: Answer | None = None

    def ask(self) -> Ask | None:
        return self._ask if self._answer is None else None

    def take(self, answer: Answer) -> None:
        self._answer = answer

    def verdict(self) -> Verdict:
        if self._answer is None:
            raise RuntimeError("the verdict stands at the end")
        return self._judge(self._answer)


@dataclass(frozen=True, slots=True)
class Made:
    """What a suite makes of a random number generator: the ask, and how to judge its answer."""

    ask: Ask
    judge: Judge

    def play(self) -> Play:
        return Question(self.ask, self.judge)


Fault = Callable[[str], str | None]
"""What is wrong with a text; None if nothing is."""


def text_question(prompt: str, fault: Fault, max_tokens: int, *, schema: Mapping[str, Any] | None = None) -> Made:
    """A question that is answered in words (calling tools, where none are offered, is no answer)."""
    return Made(Ask(user(prompt), max_tokens, schema=schema), lambda answer: Verdict(fault(answer.text)))


def user(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


@dataclass(frozen=True, slots=True)
class Suite:
    """tasks: of a seed, so many; always the same for the same seed, and the first ones the same for any number. about: what it
    checks, in a sentence. quick: how many tasks --quick takes. missing: what to do before it can be used; None = nothing."""

    name: str
    about: str
    tasks: Callable[[int, int], Sequence[Task]]
    quick: int = 6
    missing: Callable[[], str | None] = lambda: None


def fresh(name: str, levels: int, make: Callable[[Random, int], Callable[[], Play]]) -> Callable[[int, int], list[Task]]:
    """Tasks that are made up: the levels take turns, and each task has a generator of its own."""

    def tasks(seed: int, count: int) -> list[Task]:
        return [_task(seed, index) for index in range(count)]

    def _task(seed: int, index: int) -> Task:
        level = 1 + index % levels
        return Task(f"{name}/{index}", level, make(Random(f"{name}/{seed}/{index}"), level))

    return tasks
