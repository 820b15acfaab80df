"""Irrelevance: tools are offered, and none of them fits. Right is to call none."""

from __future__ import annotations

from random import Random

from headway.compare.suites.calls import judge_calls
from headway.compare.suites.task import Made, Suite, fresh, user
from headway.compare.suites.toolbox import ALARM, BOOK, CONVERT, KITS, LAMP, MESSAGE, WEATHER, Kit
from headway.compare.suites.words import PEOPLE, PLACES, THINGS
from headway.compare.target import Ask

MAX_TOKENS = 48
TALK = ("Hello, how are you?", "Thank you, that was all.", "Tell me a joke.", "Who are you?")
QUESTIONS = ("How many legs does a spider have?", "Write one sentence about {thing}s.", "What does the word {thing} mean?")
NEAR: tuple[tuple[str, Kit], ...] = (
    ("How many people live in {city}?", WEATHER),
    ("Remind me which lamp I bought last year.", LAMP),
    ("What time is it in {city} now?", ALARM),
    ("How much does a {thing} cost?", CONVERT),
    ("Which restaurant in {city} has the best soup?", BOOK),
    ("What did {person} write to me yesterday?", MESSAGE),
)
UNFINISHED: tuple[tuple[str, Kit], ...] = (
    ("Cancel my table for tonight, please; I mean the one in the name of {person}.", BOOK),
    ("What was the weather in {city} on this day ten years ago?", WEATHER),
    ("Turn off the alarm that rings every morning.", ALARM),
    ("Is the lamp in the kitchen on?", LAMP),
    ("How much was one euro in yen in 1999?", CONVERT),
    ("Delete the message that I have just sent to {person}.", MESSAGE),
)


def make(rng: Random, level: int) -> Made:
    """Level 1: small talk beside one tool. 2: a question beside one. 3: the same beside all. 4: what is near a tool. 5: what a
    tool seems made for, and can't do."""
    near: Kit | None = None
    if level == 1:
        words = rng.choice(TALK)
    elif level <= 3:
        words = rng.choice(QUESTIONS)
    else:
        words, near = rng.choice(NEAR if level == 4 else UNFINISHED)
    kits = [rng.choice(KITS)] if level <= 2 else list(KITS) if level == 3 else rng.sample(KITS, 3)
    if near is not None and near not in kits:
        kits[0] = near
    tools = tuple(kit.tool for kit in kits)
    prompt = words.format(thing=rng.choice(THINGS), city=rng.choice(PLACES), person=rng.choice(PEOPLE))
    return Made(Ask(user(prompt), MAX_TOKENS, tools=tools), lambda answer: judge_calls(answer, tools, ()))


SUITE = Suite(
    "irrelevance",
    "Calls no tool where none fits (a model that never calls one gets all of these).",
    fresh("irrelevance", 5, lambda r, n: make(r, n).play),
    quick=5,
)
