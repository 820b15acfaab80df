"""Transformation of text by rules: the answer must be exactly what the rules make of it."""

from __future__ import annotations

from random import Random

from headway.compare.suites.task import Made, Suite, fresh, text_question
from headway.compare.suites.texts import exact
from headway.compare.suites.words import ANIMALS, COLOURS, PEOPLE, PLACES, THINGS

ALONE = "Answer with the result alone."


def make(rng: Random, level: int) -> Made:
    """Level 1: repeat, or capital letters. 2: the last of a list, or its end first. 3: sort. 4: letters of a
    word. 5: several rules, one after the other, over a table."""
    return (_one_word, _list, _sorted, _letters, _table)[level - 1](rng)


def _ask(prompt: str, wanted: str, max_tokens: int = 32) -> Made:
    return text_question(f"{prompt} {ALONE}", lambda answer: exact(answer, wanted), max_tokens)


def _one_word(rng: Random) -> Made:
    word = rng.choice(THINGS + ANIMALS)
    if rng.random() < 0.5:
        return _ask(f"Repeat this word: {word}.", word, 12)
    return _ask(f"Write this word in capital letters: {word}.", word.upper(), 12)


def _list(rng: Random) -> Made:
    words = rng.sample(THINGS, 4)
    if rng.random() < 0.5:
        return _ask(f"Which is the last word of this list? {', '.join(words)}.", words[-1], 16)
    return _ask(f"Write this list in reverse order, with commas: {', '.join(words)}.", ", ".join(reversed(words)))


def _sorted(rng: Random) -> Made:
    words = rng.sample(PLACES + PEOPLE, 7)
    return _ask(
        f"Sort these names by the alphabet, with commas between them: {', '.join(words)}.", ", ".join(sorted(words)), 48
    )


def _letters(rng: Random) -> Made:
    word = rng.choice(COLOURS) + rng.choice(THINGS)
    if rng.random() < 0.5:
        return _ask(f"Write the letters of {word} in reverse order, as one word.", word[::-1])
    shift = rng.randint(2, 6)
    moved = "".join(chr((ord(letter) - 97 + shift) % 26 + 97) for letter in word)
    return _ask(
        f"Replace each letter of {word} by the letter {shift} places later in the alphabet (z is followed by a).", moved
    )


def _table(rng: Random) -> Made:
    names = rng.sample(PEOPLE, 6)
    rows = [(name, rng.choice(PLACES[:4]), rng.randint(10, 99)) for name in names]
    rows.insert(rng.randint(1, 5), rows[0])
    kept = sorted(dict.fromkeys(rows), key=lambda row: (row[1], -row[2], row[0]))
    wanted = "\n".join(f"{i}. {city.upper()}: {name} ({value})" for i, (name, city, value) in enumerate(kept, start=1))
    lines = "\n".join(";".join(map(str, row)) for row in rows)
    return _ask(
        f"{lines}\n\nThe lines above are name;city;number. Drop lines that came before, sort by city, within a city by number "
        "from high to low, and write each as a line 'N. CITY: name (number)', numbered from 1, the city in capital letters.",
        wanted,
        160,
    )


SUITE = Suite(
    "transformation", "Changes a text by rules, to the letter.", fresh("transformation", 5, lambda r, n: make(r, n).play)
)
