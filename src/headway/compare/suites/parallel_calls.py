"""Several calls in one answer."""

from __future__ import annotations

from random import Random

from headway.compare.suites.calls import Wanted, choice, judge_calls
from headway.compare.suites.task import Made, Suite, fresh, user
from headway.compare.suites.toolbox import ALARM, BOOK, CONVERT, LAMP, MESSAGE, WEATHER
from headway.compare.target import Ask

KITS = (WEATHER, ALARM, LAMP, MESSAGE, CONVERT, BOOK)
CALLS = (2, 3, 4, 6, 8)


def make(rng: Random, level: int) -> Made:
    """Level 1: two calls of one tool. 2 to 5: three to eight calls of up to six tools."""
    count = CALLS[level - 1]
    kits = (rng.choice(KITS[:2]),) if level == 1 else tuple(rng.sample(KITS, min(count - 1, len(KITS))))
    requests: list[tuple[str, Wanted]] = []
    said: set[str] = set()
    while len(requests) < count:
        words, wanted = rng.choice(kits).request(rng)
        if words not in said:
            said.add(words)
            requests.append((words, wanted))
    tools = tuple(kit.tool for kit in kits)
    prompt = "Do all of this at once, with one call for each:\n" + "\n".join(f"- {words}" for words, _ in requests)
    wanted_calls = [wanted for _, wanted in requests]
    return Made(
        Ask(user(prompt), 40 * count, tools=tools, tool_choice=choice(level)),
        lambda answer: judge_calls(answer, tools, wanted_calls),
    )


SUITE = Suite("parallel", "Makes several calls in one answer.", fresh("parallel", 5, lambda r, n: make(r, n).play), quick=5)
