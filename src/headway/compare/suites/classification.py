"""Classification: one label out of several."""

from __future__ import annotations

from random import Random

from headway.compare.suites.task import Made, Suite, fresh, text_question
from headway.compare.suites.texts import one_of
from headway.compare.suites.words import ANIMALS, COLOURS, PEOPLE, PLACES, THINGS

MAX_TOKENS = 12

GOOD = (
    "I love this {thing}. It is great!",
    "What a wonderful {thing}, I am so happy with it.",
    "This {thing} is the best I had.",
)
BAD = ("I hate this {thing}. It is terrible!", "What an awful {thing}, I am very angry.", "This {thing} is the worst I had.")
MIXED_GOOD = (
    "I was told that the {thing} is rubbish and nobody should buy it. Whoever says so has never used it for a week.",
    "Not once in two years has the {thing} let me down, however badly I treated it.",
    "I expected to send the {thing} back within a day; a year later I would not part with it.",
)
MIXED_BAD = (
    "The {thing} came early, looks lovely and was cheap. I only wish that it had worked for longer than an afternoon.",
    "Everybody praises this {thing}. I must have got the only one that they forgot to finish.",
    "If you enjoy waiting on hold for hours, you will adore the {thing} and the people who sell it.",
)
TICKETS = {
    "billing": ("I was charged twice for {month}.", "The amount taken from my card is not the one on the page."),
    "delivery": ("The parcel that was promised for {month} is still not here.", "The courier left my box with a stranger."),
    "login": ("My password is no longer accepted since {month}.", "The code that you send to my phone never arrives."),
    "returns": (
        "I want to send back what I bought in {month}.",
        "It does not fit; how do I get rid of it and get another size?",
    ),
    "praise": (
        "Since {month} everything works perfectly, thank you.",
        "Your people were kind and quick, I just wanted to say so.",
    ),
}
TANGLED = (
    ("My card was refused because I could not sign in to change its number, so please just let me sign in.", "login"),
    ("The refund for the shoes that I sent back is fine, but why was a fee taken for it twice?", "billing"),
    ("I could pay and sign in without trouble; it is only that the driver has been 'two stops away' since Monday.", "delivery"),
    ("The box arrived on time and the price was right, yet the coat is too small and I would rather have my money.", "returns"),
    ("After last month's lost parcel I feared the worst; this time it all went so well that I tell everybody.", "praise"),
)


def make(rng: Random, level: int) -> Made:
    """Level 1: plain feelings. 2: kinds of things. 3: five kinds of messages. 4: feelings between the lines. 5: messages that
    name other kinds than their own."""
    return (_plain, _kind, _ticket, _mixed, _tangled)[level - 1](rng)


def _ask(prompt: str, wanted: str, labels: tuple[str, ...]) -> Made:
    prompt = f"{prompt}\n\nAnswer with one word: {', '.join(labels[:-1])} or {labels[-1]}."
    return text_question(prompt, lambda answer: one_of(answer, wanted, labels), MAX_TOKENS)


def _feeling(rng: Random, good: tuple[str, ...], bad: tuple[str, ...]) -> Made:
    wanted, texts = rng.choice((("positive", good), ("negative", bad)))
    text = rng.choice(texts).format(thing=rng.choice(THINGS))
    return _ask(f"Is this review positive or negative?\n\n{text}", wanted, ("positive", "negative"))


def _plain(rng: Random) -> Made:
    return _feeling(rng, GOOD, BAD)


def _kind(rng: Random) -> Made:
    kinds = {"colour": COLOURS, "animal": ANIMALS, "city": PLACES, "name": PEOPLE}
    wanted = rng.choice(tuple(kinds))
    return _ask(f"What is the word {rng.choice(kinds[wanted])!r}?", wanted, tuple(kinds))


def _message(text: str, wanted: str) -> Made:
    return _ask(f"A customer writes:\n\n{text}\n\nWhich kind of message is it?", wanted, tuple(TICKETS))


def _ticket(rng: Random) -> Made:
    wanted = rng.choice(tuple(TICKETS))
    return _message(rng.choice(TICKETS[wanted]).format(month=rng.choice(("March", "May", "autumn"))), wanted)


def _mixed(rng: Random) -> Made:
    return _feeling(rng, MIXED_GOOD, MIXED_BAD)


def _tangled(rng: Random) -> Made:
    return _message(*rng.choice(TANGLED))


SUITE = Suite(
    "classification", "Puts a text under one of several labels.", fresh("classification", 5, lambda r, n: make(r, n).play)
)
