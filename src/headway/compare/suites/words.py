"""Names and things that tasks are made of."""

from __future__ import annotations

from random import Random

PEOPLE = ("Anna", "Boris", "Chloe", "David", "Emma", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kira", "Liam", "Maya", "Noah")
PLACES = ("Paris", "Rome", "Oslo", "Madrid", "Vienna", "Dublin", "Prague", "Lisbon", "Athens", "Berlin", "Warsaw", "Helsinki")
THINGS = ("apple", "lamp", "chair", "bottle", "ladder", "basket", "mirror", "kettle", "pillow", "hammer", "candle", "bucket")
COLOURS = ("red", "blue", "green", "yellow", "black", "white", "purple", "orange")
ANIMALS = ("dog", "cat", "horse", "rabbit", "goat", "duck", "sheep", "tiger")
JOBS = ("teacher", "baker", "nurse", "pilot", "farmer", "painter", "lawyer", "gardener")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def date(rng: Random, year: int = 2026) -> str:
    """2026-03-09."""
    return f"{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def clock(rng: Random) -> str:
    """14:30."""
    return f"{rng.randint(7, 20):02}:{rng.choice((0, 15, 30, 45)):02}"


def code(rng: Random) -> str:
    """KX-4821: what nobody can guess."""
    letters = "".join(rng.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=2))
    return f"{letters}-{rng.randint(1000, 9999)}"
