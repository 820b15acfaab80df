"""Scoring by the AST rules of the Berkeley Function Calling Leaderboard, as its paper and its own checker have them
(Patil et al., "The Berkeley Function Calling Leaderboard", ICML 2025; its Python categories).

A call is right if it names the function, has all required parameters and no unknown ones, and each value has the described type
and is one of the possible answers; text is compared without case, spaces and the signs ,./-_*^ . A parameter may be left out if
"" is among its possible answers. An integer will do for a float. Calls of a parallel question match in whatever order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Calls = Sequence[tuple[str, Mapping[str, Any]]]
"""Names and arguments."""

_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_IGNORED = re.compile(r"[ ,./\-_*^]")


def wrong(calls: Calls, functions: Sequence[Mapping[str, Any]], truth: Sequence[Mapping[str, Any]]) -> str | None:
    """Why the calls are not the possible ones; None if they are. functions: their descriptions as the data has them, with names
    as the calls have them. truth: for each call {name: {parameter: possible answers}}."""
    if len(calls) != len(truth):
        return f"wanted {len(truth)} call{'s' * (len(truth) > 1)}, got {len(calls)}"
    left = list(calls)
    for possible in truth:
        (name, answers), faults = next(iter(possible.items())), []
        function = next(f for f in functions if f["name"] == name)
        for call in left:
            fault = _fault(call, function, answers)
            if fault is None:
                left.remove(call)
                break
            faults.append(fault)
        else:
            return faults[0]
    return None


def _fault(call: tuple[str, Mapping[str, Any]], function: Mapping[str, Any], answers: Mapping[str, Any]) -> str | None:
    name, arguments = call
    if name != function["name"]:
        return f"wanted {function['name']}, got {name}"
    described = function["parameters"]["properties"]
    for needed in function["parameters"]["required"]:
        if needed not in arguments:
            return f"{name}: {needed} is missing"
    for parameter, value in arguments.items():
        if parameter not in described or parameter not in answers:
            return f"{name}: there is no {parameter}"
        if not _is_possible(value, described[parameter], answers[parameter]):
            return f"{name}: {parameter} is {value!r}"
    left_out = next((p for p in answers if p not in arguments and "" not in answers[p]), None)
    return None if left_out is None else f"{name}: {left_out} is missing"


def _is_possible(value: Any, description: Mapping[str, Any], possible: Sequence[Any]) -> bool:
    wanted: Any = _TYPES[description["type"]]
    inner = _TYPES[description["items"]["type"]] if description["type"] in ("array", "tuple") else None
    if wanted is float and type(value) is int:
        value = float(value)
    given_type = next((type(answer) for answer in possible if answer != ""), None)
    if type(value) is wanted:
        if inner is not None and not _items_fit(value, inner, possible):
            return False
        if given_type is not None and given_type is not wanted:
            return value in possible  # where the possible answers are of another type, they stand for a variable's name
    elif given_type is not None and type(value) is given_type:
        return value in possible
    else:
        return False
    if wanted is dict:
        return any(_dict_is(value, answer) for answer in possible if answer != "")
    if wanted is list and inner is dict:
        return any(_dicts_are(value, answer) for answer in possible)
    if wanted is str:
        return _plain(value) in [_plain(answer) for answer in possible if isinstance(answer, str)]
    if wanted is list:
        return [_plain(item) for item in value] in [[_plain(item) for item in answer] for answer in possible]
    return value in possible


def _items_fit(value: Sequence[Any], inner: type, possible: Sequence[Any]) -> bool:
    """Whether every item has the described type, or that of one possible answer's items."""
    for answer in possible:
        if not isinstance(answer, list):
            return True
        given = next((type(item) for item in answer if item != ""), None)
        if all(type(item) is inner or (given is not None and type(item) is given) for item in value):
            return True
    return False


def _dict_is(value: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    for key, item in value.items():
        if key not in answer or _plain(item) not in [_plain(possible) for possible in answer[key]]:
            return False
    return all(key in value or "" in possible for key, possible in answer.items())


def _dicts_are(values: Sequence[Any], answers: Sequence[Any]) -> bool:
    if len(values) != len(answers):
        return False
    return all(isinstance(value, dict) and _dict_is(value, answer) for value, answer in zip(values, answers, strict=True))


def _plain(value: Any) -> Any:
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value
