"""Editing code: a function and what to change; the answer runs against tests that it doesn't see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headway.compare.suites.sandbox import run
from headway.compare.suites.task import Made, Suite, Verdict, fresh, user
from headway.compare.suites.texts import code_of, shown
from headway.compare.target import Answer, Ask

MAX_TOKENS = (80, 110, 140, 220, 420)


@dataclass(frozen=True, slots=True)
class Edit:
    """code: as it stands. wish: what to change. function: its name. tests: arguments, and what must come back."""

    code: str
    wish: str
    function: str
    tests: Sequence[tuple[Sequence[Any], Any]]


def make(rng: Random, level: int) -> Made:
    """Level 1: a constant. 2: an operator that is wrong. 3: a case that is missing. 4: another order with ties. 5: a small
    language with brackets and errors."""
    return _made((_constant, _operator, _missing, _ranking, _language)[level - 1](rng), MAX_TOKENS[level - 1])


def fault(text: str, edit: Edit) -> str | None:
    """What the answer's code gets wrong."""
    ran = run(code_of(text), edit.function, [arguments for arguments, _ in edit.tests])
    if ran.fault is not None:
        return ran.fault
    for (arguments, wanted), got in zip(edit.tests, ran.results, strict=True):
        if got != wanted or type(got) is not type(wanted):
            said = ", ".join(map(repr, arguments))
            return f"{edit.function}({said}) should be {wanted!r}, is {shown(repr(got))}"
    return None


def _made(edit: Edit, max_tokens: int) -> Made:
    prompt = f"```python\n{edit.code}```\n\n{edit.wish} Answer with the whole function as Python code, and nothing else."

    def judge(answer: Answer) -> Verdict:
        return Verdict(fault(answer.text, edit))

    return Made(Ask(user(prompt), max_tokens), judge)


def _constant(rng: Random) -> Edit:
    old, new = rng.sample(range(2, 90), 2)
    code = f"def limit():\n    return {old}\n"
    return Edit(code, f"Change the function so that it returns {new}.", "limit", [((), new)])


def _operator(rng: Random) -> Edit:
    a, b, c = rng.randint(2, 9), rng.randint(2, 9), rng.randint(20, 60)
    code = "def area(width, height):\n    return width + height\n"
    return Edit(code, "It should compute the area of a rectangle. Mend it.", "area", [((a, b), a * b), ((c, 3), c * 3)])


def _missing(rng: Random) -> Edit:
    values = rng.sample(range(1, 99), 5)
    missing = rng.randint(-9, -1)
    code = "def mean(values):\n    return sum(values) / len(values)\n"
    wish = f"It fails for an empty list. Make it return {missing} there, and leave out values that are None."
    return Edit(
        code, wish, "mean", [((values,), sum(values) / 5), (([],), missing), (([None, 4, 6],), 5.0), (([None],), missing)]
    )


def _ranking(rng: Random) -> Edit:
    names = rng.sample(("ada", "bo", "cy", "di", "ed", "flo", "gus"), 5)
    rows = [[name, rng.randint(1, 3), rng.randint(1, 4)] for name in names]
    code = (
        "def ranking(rows):\n    # each row: name, wins, losses\n    ordered = sorted(rows, key=lambda row: row[1])\n"
        "    return [row[0] for row in ordered]\n"
    )
    wish = (
        "Most wins should come first; among equal wins fewest losses; among these by name. Rows of equal wins and losses share "
        "their place. Return pairs [place, name], where the place after a shared one counts all before it (1, 1, 3)."
    )
    return Edit(
        code,
        wish,
        "ranking",
        [((rows,), _ranked(rows)), (([],), []), (([["z", 1, 1], ["a", 1, 1], ["m", 0, 9]],), [[1, "a"], [1, "z"], [3, "m"]])],
    )


def _ranked(rows: list[list[Any]]) -> list[list[Any]]:
    def place(row: list[Any]) -> int:
        return 1 + sum((-other[1], other[2]) < (-row[1], row[2]) for other in rows)

    return [[place(row), row[0]] for row in sorted(rows, key=lambda row: (-row[1], row[2], row[0]))]


def _language(rng: Random) -> Edit:
    a, b, c, d = (rng.randint(2, 9) for _ in range(4))
    code = "def value(text):\n    left, sign, right = text.split()\n    return int(left) + int(right)\n"
    wish = (
        "Make it compute any expression of whole numbers with + - * and brackets, with or without spaces, * before + and "
        "-, and a minus before a number or a bracket; `a ^ b` is a power that binds closest, to the right. Return None if the "
        "text is not such an expression. No eval, no exec, no imports."
    )
    tests: list[tuple[list[str], Any]] = [
        ([f"{a} + {b}"], a + b),
        ([f"{a}+{b}*{c}"], a + b * c),
        ([f"({a}+{b})*-{c}"], (a + b) * -c),
        ([f"-({a} - {b}) - {d}"], -(a - b) - d),
        (["2^3^2"], 512),
        ([f"{a}*2^2*{b}"], a * 4 * b),
        (["-2^2"], -4),
        ([f"{a} +"], None),
        (["(1"], None),
        (["1 2"], None),
        ([""], None),
    ]
    return Edit(code, wish, "value", tests)


SUITE = Suite(
    "code", "Edits a function; the result runs against tests.", fresh("code", 5, lambda r, n: make(r, n).play), quick=5
)
