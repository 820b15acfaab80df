"""Choosing among many tools that are like each other."""

from __future__ import annotations

from itertools import product
from random import Random

from headway.compare.suites.calls import Tool, Wanted, choice, judge_calls, tool
from headway.compare.suites.task import Made, Suite, fresh, user
from headway.compare.target import Ask

MAX_TOKENS = 48
OFFERED = (2, 4, 8, 16, 48)
NOUNS = ("invoice", "ticket", "customer", "shipment", "contract", "project", "account", "report")
VERBS = {
    "create": "Makes a new {noun} with this id.",
    "delete": "Removes a {noun} for good.",
    "archive": "Puts a {noun} into the archive, from where it can be restored.",
    "restore": "Takes a {noun} out of the archive.",
    "export": "Saves a {noun} as a file.",
    "lock": "Keeps a {noun} from being changed.",
}
PLAIN = {
    "create": "Create the {noun} {id}.",
    "delete": "Delete the {noun} {id}.",
    "archive": "Archive the {noun} {id}.",
    "restore": "Restore the {noun} {id}.",
    "export": "Export the {noun} {id}.",
    "lock": "Lock the {noun} {id}.",
}
ROUNDABOUT = {
    "create": "We need something that isn't there yet: a {noun}, and its id shall be {id}.",
    "delete": "I never want to see the {noun} {id} again, and nobody shall be able to bring it back.",
    "archive": "Clear the {noun} {id} out of the way, but we may want it back some day.",
    "restore": "The {noun} {id} was put aside last year; it is needed among the others again.",
    "export": "I would like the {noun} {id} on my disk, to send it to somebody.",
    "lock": "From now on nobody is to touch a word in the {noun} {id}.",
}


def make(rng: Random, level: int) -> Made:
    """Level 1 to 5: 2, 4, 8, 16 and all 48 tools; from level 4 on the request doesn't say the tool's verb."""
    pairs = rng.sample(list(product(VERBS, NOUNS)), OFFERED[level - 1])
    tools = tuple(_tool(verb, noun) for verb, noun in pairs)
    verb, noun = rng.choice(pairs)
    number = rng.randint(100, 999)
    words = (PLAIN if level < 4 else ROUNDABOUT)[verb].format(noun=noun, id=number)
    wanted = Wanted(f"{verb}_{noun}", {"id": number})
    return Made(
        Ask(user(words), MAX_TOKENS, tools=tools, tool_choice=choice(level)),
        lambda answer: judge_calls(answer, tools, (wanted,)),
    )


def _tool(verb: str, noun: str) -> Tool:
    return tool(f"{verb}_{noun}", VERBS[verb].format(noun=noun), {"id": {"type": "integer"}})


SUITE = Suite("many-tools", "Chooses one of up to 48 tools.", fresh("many-tools", 5, lambda r, n: make(r, n).play), quick=5)
