"""Extraction: find a value in a text, among others like it."""

from __future__ import annotations

from random import Random

from headway.compare.suites.task import Made, Suite, fresh, text_question
from headway.compare.suites.texts import one_of
from headway.compare.suites.words import COLOURS, JOBS, PEOPLE, PLACES, code, date

MAX_TOKENS = 20


def make(rng: Random, level: int) -> Made:
    """Level 1: one sentence. 2: two people. 3: a list of so many orders. 4: by two conditions. 5: by what is said later."""
    return (_colour, _city, _order, _two_conditions, _corrected)[level - 1](rng)


def _ask(text: str, question: str, wanted: str, others: list[str]) -> Made:
    prompt = f"{text}\n\n{question} Answer with that alone."
    return text_question(prompt, lambda answer: one_of(answer, wanted, others), MAX_TOKENS)


def _colour(rng: Random) -> Made:
    name, colour = rng.choice(PEOPLE), rng.choice(COLOURS)
    others = [other for other in COLOURS if other != colour]
    return _ask(f"{name} has a {colour} car.", f"What colour is {name}'s car?", colour, others)


def _city(rng: Random) -> Made:
    (one, two), (first, second) = rng.sample(PEOPLE, 2), rng.sample(PLACES, 2)
    job, other_job = rng.sample(JOBS, 2)
    text = f"{one} lives in {first} and works as a {job}. {two} lives in {second} and works as a {other_job}."
    return _ask(text, f"In which city does {two} live?", second, [first])


def _order(rng: Random) -> Made:
    rows = [(name, code(rng), date(rng)) for name in rng.sample(PEOPLE, 6)]
    text = "\n".join(f"Order {number} was placed by {name} on {day}." for name, number, day in rows)
    name, number, _ = rng.choice(rows)
    return _ask(text, f"What is the number of the order that {name} placed?", number, [row[1] for row in rows])


def _two_conditions(rng: Random) -> Made:
    people, cities = rng.sample(PEOPLE, 3), rng.sample(PLACES, 3)
    pairs = [(name, city) for name in people for city in cities]
    rng.shuffle(pairs)
    rows = [(name, city, code(rng)) for name, city in pairs]
    text = "\n".join(f"Ticket {number}: {name} to {city}." for name, city, number in rows)
    name, city, number = rng.choice(rows)
    return _ask(text, f"What is the number of the ticket of {name} to {city}?", number, [row[2] for row in rows])


def _corrected(rng: Random) -> Made:
    rows = [(name, code(rng)) for name in rng.sample(PEOPLE, 8)]
    texts = [f"{name}'s locker has the code {number}." for name, number in rows]
    (one, old), (two, given) = rng.sample(rows, 2)
    fresh_code = code(rng)
    texts.append(f"{one} and {two} have swapped lockers since, with their codes.")
    texts.append(f"Later the code of the locker that is {two}'s now was changed to {fresh_code}.")
    wanted, question = rng.choice(((fresh_code, two), (given, one)))
    others = [old, given, fresh_code, *(number for _, number in rows)]
    return _ask(" ".join(texts), f"Which code opens {question}'s locker now?", wanted, others)


SUITE = Suite(
    "extraction", "Finds a value in a text, among others like it.", fresh("extraction", 5, lambda r, n: make(r, n).play)
)
