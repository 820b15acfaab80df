"""A result to show, with labels and words that would break a page that didn't escape them."""

from __future__ import annotations

from random import Random

from headway.compare.capability.asking import Column
from headway.compare.capability.figures import figures_of
from headway.compare.capability.outcome import Outcome, judge
from headway.compare.capability.result import CapabilityResult
from headway.compare.suites import arithmetic, chain
from headway.compare.suites.task import Question, Task, Verdict
from headway.compare.target import Answer, Ask, Price

from ..answers import said
from ..capability.asked import Oracle
from ..records import success

EVIL = "</title><script>alert(1)</script>&\"'<b>$x$"


def result(
    labels: tuple[str, ...] = ("standard", "fast", "spark"), tasks: int = 30, price: float | None = 1.0
) -> CapabilityResult:
    """Answers by a seed: each target is quicker than the one before, and makes more mistakes."""
    columns = []
    for place, label in enumerate(labels):
        rng = Random(place)
        column = Column(Oracle(lambda prompt: "", label, None if price is None else Price(price, 6 * price * (place + 1))))
        for number in range(tasks):
            fine, level = rng.random() > 0.1 + 0.2 * place, 1 + number % 5
            column.outcomes.append(outcome("arithmetic", number, level, Verdict(None if fine else "x", 1, int(fine)), place))
            steps = (1, 2, 3, 5, 8)[number % 5]
            done = next((k for k in range(steps) if rng.random() < 0.05 + 0.1 * place), steps)
            verdict = Verdict(None if done == steps else "x", done, done, steps, done)
            column.outcomes.append(outcome("chain", number, level, verdict, place))
        column.outcomes.append(Outcome("chain", Task("chain/x", 1, lambda: question(Verdict())), failure=f"HTTP 500: {EVIL}"))
        judge(column.outcomes)
        columns.append(figures_of(column, ["arithmetic", "chain"]))
    suites = {suite.name: suite.about for suite in (arithmetic.SUITE, chain.SUITE)}
    counts = dict.fromkeys(suites, tasks)
    machine = {"cpu": EVIL, "cores": 2, "memory_gib": 8.0, "os": "Linux", "python": "3.11"}
    return CapabilityResult(
        f"headway compare '{EVIL}'", "2026-02-01", 0, suites, counts, tuple(columns), "USD", (EVIL,), machine=machine
    )


def outcome(suite: str, number: int, level: int, verdict: Verdict, place: int) -> Outcome:
    record = success(0.0, 0.4 / (1 + place), 0.09 / (1 + place) ** 2, 20 + number % 30)
    answer: Answer = said("x")
    answer.record = record
    return Outcome(suite, Task(f"{suite}/{number}", level, lambda: question(verdict)), [answer])


def question(verdict: Verdict) -> Question:
    return Question(Ask([], 1), lambda answer: verdict)
