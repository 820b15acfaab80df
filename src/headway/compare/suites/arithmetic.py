"""Arithmetic, without tools."""

from __future__ import annotations

from random import Random

from headway.compare.suites.task import Made, Suite, fresh, text_question
from headway.compare.suites.texts import number
from headway.compare.suites.words import PEOPLE, THINGS

MAX_TOKENS = 24


def make(rng: Random, level: int) -> Made:
    """Level 1: one digit and one digit. 2: two digits, plus or minus. 3: a story in two steps. 4: three digits times two, in
    brackets. 5: five digits times five."""
    return (_one_digit, _two_digits, _story, _brackets, _long)[level - 1](rng)


def _ask(question: str, wanted: int, *given: int) -> Made:
    prompt = f"{question} Answer with the number alone."
    return text_question(prompt, lambda answer: number(answer, wanted, given), MAX_TOKENS)


def _one_digit(rng: Random) -> Made:
    a, b = rng.randint(1, 9), rng.randint(1, 9)
    return _ask(f"What is {a} + {b}?", a + b, a, b)


def _two_digits(rng: Random) -> Made:
    a, b = sorted((rng.randint(10, 99), rng.randint(10, 99)), reverse=True)
    if rng.random() < 0.5:
        return _ask(f"What is {a} + {b}?", a + b, a, b)
    return _ask(f"What is {a} - {b}?", a - b, a, b)


def _story(rng: Random) -> Made:
    (one, two), thing = rng.sample(PEOPLE, 2), rng.choice(THINGS)
    boxes, each = rng.randint(3, 9), rng.randint(4, 12)
    given = rng.randint(2, boxes * each - 2)
    text = f"{one} buys {boxes} boxes of {each} {thing}s each and gives {given} {thing}s to {two}."
    return _ask(f"{text} How many {thing}s does {one} have left?", boxes * each - given, boxes, each, given)


def _brackets(rng: Random) -> Made:
    a, b, c, d = rng.randint(100, 999), rng.randint(11, 99), rng.randint(100, 999), rng.randint(11, 99)
    return _ask(f"What is ({a} - {b}) * {d} + {c}?", (a - b) * d + c, a, b, c, d)


def _long(rng: Random) -> Made:
    a, b = rng.randint(10_000, 99_999), rng.randint(10_000, 99_999)
    return _ask(f"What is {a} * {b}?", a * b, a, b)


SUITE = Suite("arithmetic", "Computes, without tools.", fresh("arithmetic", 5, lambda r, n: make(r, n).play))
