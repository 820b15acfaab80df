"""What came of asking a target a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.compare.suites.task import Task, Verdict
from headway.compare.target import Answer, Price
from headway.compare.targets.prices import cost


@dataclass(slots=True)
class Outcome:
    """suite: its name. answers: in order, all of them successes of the API. failure: why the API failed on the next one: then
    there is no verdict, and the task counts neither as right nor as wrong."""

    suite: str
    task: Task
    answers: list[Answer] = field(default_factory=list)
    failure: str | None = None
    verdict: Verdict | None = None

    @property
    def seconds(self) -> float:
        """From asking to the end of the answer, summed over the turns; waits that the API asked for are in it."""
        ends = [answer.record for answer in self.answers]
        return sum((record.finished or record.intended) - record.intended for record in ends)

    @property
    def engine_seconds(self) -> float | None:
        """Device seconds that the server charged (headway says so); None where one of the answers doesn't say."""
        charged = [a.record.served_by.engine_seconds if a.record.served_by else None for a in self.answers]
        known = [seconds for seconds in charged if seconds is not None]
        return sum(known) if known and len(known) == len(charged) else None

    def price(self, price: Price | None) -> float | None:
        """In the price's currency; None if it, or the tokens of one of the answers, are unknown."""
        records = [answer.record for answer in self.answers]
        if price is None or any(record.prompt_tokens is None or record.output_tokens is None for record in records):
            return None
        return cost(price, records)


def judge(outcomes: Sequence[Outcome]) -> None:
    """Give a verdict on all that were answered and have none yet, by going through their answers again."""
    for outcome in outcomes:
        if outcome.failure is None and outcome.verdict is None:
            play = outcome.task.play()
            for answer in outcome.answers:
                play.ask()
                play.take(answer)
            outcome.verdict = play.verdict()
