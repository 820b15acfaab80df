"""Berkeley Function Calling Leaderboard, version 4: questions of its `bfcl-eval` wheel, which is only read, never imported.

`pip install --no-deps bfcl-eval`: its requirements are many, and not needed for the data.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from headway.compare.suites.bfcl_rules import wrong
from headway.compare.suites.calls import Tool, arguments_of, invalid
from headway.compare.suites.task import Made, Suite, Task, Verdict
from headway.compare.target import Answer, Ask

MAX_TOKENS = 192
CATEGORIES = ("irrelevance", "simple_python", "multiple", "parallel", "parallel_multiple")
"""By level. The first has no answer: no function fits."""
INSTALL = "pip install --no-deps bfcl-eval"
_JSON_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def missing() -> str | None:
    return None if _folder() is not None else f"its questions are not here; {INSTALL}"


def tasks(seed: int, count: int) -> list[Task]:
    """The categories take turns; within each, questions in an order of the seed's, none twice until all were there."""
    orders = {}
    for category in CATEGORIES:
        orders[category] = list(range(len(_entries(category))))
        Random(f"bfcl/{seed}/{category}").shuffle(orders[category])
    return [_task(index, orders) for index in range(count)]


def _task(index: int, orders: Mapping[str, Sequence[int]]) -> Task:
    turn, place = divmod(index, len(CATEGORIES))
    category = CATEGORIES[place]
    entry = _entries(category)[orders[category][turn % len(orders[category])]]
    return Task(f"bfcl/{entry['id']}", place + 1, lambda: made(entry).play())


def made(entry: Mapping[str, Any]) -> Made:
    """The question of an entry (with its `ground_truth`, None for irrelevance)."""
    functions = [{**function, "name": plain_name(function["name"])} for function in entry["function"]]
    tools = tuple({"type": "function", "function": _openai(function)} for function in functions)
    truth = entry["ground_truth"]
    if truth is not None:
        truth = [{plain_name(name): answers for name, answers in possible.items()} for possible in truth]
    ask = Ask(list(entry["question"][0]), MAX_TOKENS, tools=tools)
    return Made(ask, lambda answer: judge(answer, functions, tools, truth))


def judge(
    answer: Answer, functions: Sequence[Mapping[str, Any]], tools: Sequence[Tool], truth: Sequence[Mapping[str, Any]] | None
) -> Verdict:
    valid = sum(invalid(call, tools) is None for call in answer.calls)
    if truth is None:
        fault = f"called {answer.calls[0].name!r}, where no function fits" if answer.calls else None
    else:
        try:
            fault = wrong([(call.name, arguments_of(call)) for call in answer.calls], functions, truth)
        except (ValueError, RecursionError):
            fault = "the arguments are no JSON object"
    return Verdict(fault, len(answer.calls), valid)


def plain_name(name: str) -> str:
    """APIs allow no dots in names; the leaderboard replaces them for such APIs, too."""
    return name.replace(".", "_")


def _openai(function: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function["description"],
        "parameters": _schema(function["parameters"]),
    }


def _schema(description: Any) -> Any:
    """The leaderboard's types, which are Python's, as JSON schema's."""
    if isinstance(description, list):
        return [_schema(item) for item in description]
    if not isinstance(description, dict):
        return description
    schema = {key: value if key in ("enum", "default") else _schema(value) for key, value in description.items()}
    if isinstance(schema.get("type"), str):
        schema["type"] = _JSON_TYPES.get(schema["type"], schema["type"])
    return schema


@functools.cache
def _folder() -> Path | None:
    spec = find_spec("bfcl_eval")
    places = [] if spec is None else spec.submodule_search_locations or []
    return next((Path(place) / "data" for place in places if (Path(place) / "data").is_dir()), None)


@functools.cache
def _entries(category: str) -> list[dict[str, Any]]:
    folder = _folder()
    if folder is None:
        raise FileNotFoundError(missing())
    entries = _lines(folder / f"BFCL_v4_{category}.json")
    answers = folder / "possible_answer" / f"BFCL_v4_{category}.json"
    truth = {line["id"]: line["ground_truth"] for line in _lines(answers)} if answers.exists() else {}
    return [{**entry, "ground_truth": truth.get(entry["id"])} for entry in entries]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


SUITE = Suite("bfcl", "Questions of the Berkeley Function Calling Leaderboard, version 4, by its AST rules.", tasks, 5, missing)
