"""What the model is asked, so that it shows how it answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headway.compare.prompts import PROMPTS
from headway.distill.facts import short_question
from headway.distill.library import standard_library
from headway.distill.topics import ABOUT_A_TEXT, ABOUT_CODE, ARITHMETIC, PROGRAMMING, TASKS, TOPICS

Messages = list[dict[str, Any]]

HELD_OUT_SHARE = 20
"""One in so many of a user's own prompts is held out, MOST_HELD_OUT at the most."""
MOST_HELD_OUT = 64
SHORT_SHARE = 0.5
"""Of the made-up prompts are short questions: with their short answers they are a tenth of the tokens."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """messages: None = the model shall make up the question itself. again: it was asked before, so another answer is wanted."""

    messages: Messages | None
    again: bool = False


class Prompts(Protocol):
    """As many as anyone wants, by number: the same number is always the same prompt."""

    @property
    def name(self) -> str:
        """What they are; different ones have different names."""

    @property
    def held_out(self) -> Sequence[Messages]:
        """None of the others; for finding out what was learned."""

    def at(self, number: int) -> Prompt: ...


class MadeUp:
    """Questions of the model's own, short ones about facts, tasks over topics, code, arithmetic, and texts to work on. The
    prompts of headway's own benchmarks are held out."""

    def __init__(self, seed: int = 0) -> None:
        self.name = f"made up by headway, set 2, seed {seed}"
        self.held_out = [asked(text) for text in PROMPTS]
        self._seed = seed

    def at(self, number: int) -> Prompt:
        r = random.Random(f"prompt {self._seed} {number}")
        if r.random() < SHORT_SHARE:
            return Prompt(asked(short_question(r)))
        kind = r.random()
        if kind < 0.35:
            return Prompt(None)
        return Prompt(asked(_task(r, kind)))


class Given:
    """A user's own prompts, shuffled; after the last one they come again."""

    def __init__(self, prompts: Sequence[Messages], name: str, seed: int = 0) -> None:
        """prompts: one at least."""
        known = [asked(text) for text in PROMPTS]
        mixed = list(prompts)
        random.Random(f"shuffle {seed}").shuffle(mixed)
        count = min(MOST_HELD_OUT, len(mixed) // HELD_OUT_SHARE)
        self.name = f"{name}, seed {seed}"
        self.held_out: Sequence[Messages] = mixed[:count] or known
        self._prompts = [m for m in mixed[count:] if m not in self.held_out] or mixed

    def at(self, number: int) -> Prompt:
        turn, place = divmod(number, len(self._prompts))
        return Prompt(self._prompts[place], again=turn > 0)


def asked(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def _task(r: random.Random, kind: float) -> str:
    library = standard_library()
    if kind < 0.70 and kind >= 0.62:
        return r.choice(PROGRAMMING)
    if 0.70 <= kind < 0.74:
        return r.choice(ARITHMETIC).format(a=r.randint(2, 90), b=r.randint(2, 300), c=r.randint(2, 12), d=r.randint(2, 9))
    if 0.74 <= kind < 0.91 and library.texts:
        return f"{r.choice(ABOUT_A_TEXT)}\n\n{r.choice(library.texts)}"
    if kind >= 0.91 and library.functions:
        return f"{r.choice(ABOUT_CODE)}\n\n{r.choice(library.functions)}"
    return r.choice(TASKS).format(r.choice(TOPICS))
