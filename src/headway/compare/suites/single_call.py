"""One call of the one tool there is, with the right arguments."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from headway.compare.suites.calls import choice, judge_calls
from headway.compare.suites.task import Made, Suite, fresh, user
from headway.compare.suites.toolbox import ALARM, BOOK, CONVERT, LAMP, MESSAGE, ORDER, WEATHER, Kit
from headway.compare.suites.words import PEOPLE, clock
from headway.compare.target import Ask

MAX_TOKENS = 96
LEVELS = ((WEATHER, ALARM), (LAMP, MESSAGE), (CONVERT, BOOK), (ORDER,))
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def make(rng: Random, level: int) -> Made:
    """Level 1: one argument. 2: two. 3: numbers, enums, four arguments. 4: a list of objects, and what is optional. 5: a date
    to work out."""
    kit = rng.choice(LEVELS[level - 1]) if level <= len(LEVELS) else Kit(BOOK.tool, _later)
    words, wanted = kit.request(rng)
    return Made(
        Ask(user(words), MAX_TOKENS, tools=(kit.tool,), tool_choice=choice(level)),
        lambda answer: judge_calls(answer, (kit.tool,), (wanted,)),
    )


def _later(rng: Random) -> tuple[str, dict[str, Any]]:
    today = date(2026, 1, 1) + timedelta(days=rng.randint(0, 360))
    weeks, weekday, guests = rng.randint(2, 5), rng.randint(0, 6), rng.randint(2, 6)
    day = today + timedelta(days=1)
    while day.weekday() != weekday:
        day += timedelta(days=1)
    day += timedelta(weeks=weeks - 1)
    name, hour = rng.choice(PEOPLE), clock(rng)
    words = (
        f"Today is {_DAYS[today.weekday()]}, {today.isoformat()}. I am {name}. My {guests} guests and I would like a table "
        f"at {hour} on the {weeks}{'nd' if weeks == 2 else 'rd' if weeks == 3 else 'th'} {_DAYS[weekday]} after today."
    )
    return words, {"name": name, "date": day.isoformat(), "time": hour, "people": guests + 1}


SUITE = Suite("call", "Calls one tool, with the right arguments.", fresh("call", 5, lambda r, n: make(r, n).play))
