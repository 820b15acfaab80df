"""Asking targets all tasks, a bounded number at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from headway.compare.capability.journal import AnswerJournal
from headway.compare.capability.outcome import Outcome
from headway.compare.load import ClosedLoop
from headway.compare.progress import Reporter
from headway.compare.prompts import numbered
from headway.compare.run import LOAD_TEMPERATURE
from headway.compare.suites.task import Task
from headway.compare.target import Ask, Target
from headway.compare.targets.endpoint import EndpointTarget

ROUNDS = 2
HOUSE_TOKENS = 96
RAMP_SECONDS = 2.0
GIVE_UP_AFTER = 10
"""Failures of an API in a row."""

Work = Sequence[tuple[str, Task]]
"""Tasks, with the names of their suites."""


@dataclass(slots=True)
class Column:
    """A target and how it is asked. streams: tasks at once. house: standard requests that are kept going beside, as they would
    be on a server in use. outcomes: so far, one for each task that was asked. gave_up: why it isn't asked any more."""

    target: Target
    streams: int = 4
    house: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    gave_up: str | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """work: the same for every column. room: output tokens that each answer may have beyond what its task needs, for models
    that think first. landlord: is asked what keeps a house full; None if no column has one."""

    work: Work
    journal: AnswerJournal
    reporter: Reporter
    interrupted: asyncio.Event
    room: int = 0
    landlord: EndpointTarget | None = None

    async def run(self, columns: Sequence[Column]) -> None:
        """Ask every column every task, in ROUNDS turns, each column half of the tasks in each: machines and the internet drift,
        and of targets that share a prompt cache none shall always find what the other has left there."""
        self.reporter.plan(float(len(columns) * len(self.work)))
        for turn, (place, column) in itertools.product(range(ROUNDS), enumerate(columns)):
            part = [pair for index, pair in enumerate(self.work) if (index + place) % ROUNDS == turn]
            if column.gave_up is None and not self.interrupted.is_set():
                await self._ask(column, part, f"{column.target.label} ({turn + 1} of {ROUNDS})")
        for column in columns:
            order = {task.id: index for index, (_, task) in enumerate(self.work)}
            column.outcomes.sort(key=lambda outcome: order[outcome.task.id])

    async def _ask(self, column: Column, part: Work, phase: str) -> None:
        self.reporter.phase(phase)
        left = []
        for suite, task in part:
            answers = self.journal.answers(column.target.label, task.id)
            if answers is None:
                left.append((suite, task))
            else:
                column.outcomes.append(Outcome(suite, task, answers))
                self.reporter.advance(1.0)
        if not left:
            return
        house = self._house(column.house)
        try:
            if house is not None:
                house.start(column.house, ramp_seconds=RAMP_SECONDS)
                await asyncio.sleep(2 * RAMP_SECONDS)
            await self._streams(column, iter(left))
        finally:
            if house is not None:
                await house.stop(0.0)

    def _house(self, size: int) -> ClosedLoop[Ask] | None:
        return ClosedLoop(self.landlord, _requests()) if size and self.landlord is not None else None

    async def _streams(self, column: Column, left: Iterator[tuple[str, Task]]) -> None:
        streams = [asyncio.create_task(self._stream(column, left)) for _ in range(column.streams)]
        stop = asyncio.create_task(self.interrupted.wait())
        try:
            while streams and not stop.done():
                done, _ = await asyncio.wait((*streams, stop), return_when=asyncio.FIRST_COMPLETED)
                streams = [stream for stream in streams if stream not in done]
                for ended in done - {stop}:
                    ended.result()
        finally:
            for waiting in (*streams, stop):
                waiting.cancel()
            await asyncio.gather(*streams, stop, return_exceptions=True)

    async def _stream(self, column: Column, left: Iterator[tuple[str, Task]]) -> None:
        for suite, task in left:
            if column.gave_up is not None or self.interrupted.is_set():
                return
            outcome = await self._one(column.target, suite, task)
            column.outcomes.append(outcome)
            self.journal.note(column.target.label, outcome)
            self.reporter.advance(1.0)
            last = column.outcomes[-GIVE_UP_AFTER:]
            if len(last) == GIVE_UP_AFTER and all(one.failure is not None for one in last):
                column.gave_up = f"{GIVE_UP_AFTER} failures in a row, the last one: {outcome.failure}"

    async def _one(self, target: Target, suite: str, task: Task) -> Outcome:
        play, outcome = task.play(), Outcome(suite, task)
        while (ask := play.ask()) is not None:
            answer = await target.ask(replace(ask, max_tokens=ask.max_tokens + self.room))
            if not answer.record.succeeded:
                outcome.failure = answer.record.reason or answer.record.outcome
                return outcome
            outcome.answers.append(answer)
            play.take(answer)
        return outcome


def _requests() -> Iterator[Ask]:
    """What keeps a house full."""
    for text in numbered("Standard task"):
        yield Ask([{"role": "user", "content": text}], HOUSE_TOKENS, LOAD_TEMPERATURE, ignore_eos=True)
