"""Short questions with short answers (facts.toml): what anyone asks a chat model first, and what a small one forgets first."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from importlib import resources
from typing import Any

PLACE, THING, SUM = 0.3, 0.65, 0.75
"""Shares of the kinds, added up; the rest is about a sentence."""


def short_question(r: random.Random) -> str:
    """One of some thousands."""
    facts = _facts()
    kind = r.random()
    if kind < PLACE:
        return str(r.choice(facts["of_a_place"])).format(*_place(r))
    if kind < THING:
        asked = r.choice(facts["of_a_thing"])
        return str(asked["question"]).format(r.choice(asked["things"]))
    if kind < SUM:
        a, b = r.randint(1, 12), r.randint(1, 12)
        return str(r.choice(facts["sentences"]["sums"])).format(a=a, b=b, c=a + b)
    asked = r.choice(facts["about_a_sentence"])
    return str(asked["question"]).format(_sentence(r, asked["of"]))


def _sentence(r: random.Random, about: str) -> str:
    words = _facts()["sentences"]
    things = r.choice(words["things"])
    if about == "opinion":
        first, *others = r.choice((words["good"], words["bad"]))
        return str(r.choice(words["opinions"])).format(things, first, *others)
    if about == "topic":
        return str(r.choice(words["topical"])).format(n=r.randint(2, 40))
    did = ("bought", "sold", "found", "lost")
    return f"{r.choice(words['names'])} from {_place(r)[1]} {r.choice(did)} {r.randint(2, 60)} {things}."


def _place(r: random.Random) -> list[str]:
    """A country and its capital."""
    return str(r.choice(_facts()["places"])).split(":")


@cache
def _facts() -> dict[str, Any]:
    return tomllib.loads((resources.files("headway.distill") / "facts.toml").read_text("utf-8"))
