"""Judging calls of tools: valid by their tools' schemas, and the ones that were wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from headway.compare.suites.task import Verdict
from headway.compare.suites.texts import shown
from headway.compare.target import Answer, Call

Tool = Mapping[str, Any]
HELD = 2
"""Up to this level a call is required of the model (`tool_choice`), beyond it must see for itself that one is wanted."""
_CALL_IN_WORDS = re.compile(r"<\|?tool_call|<function[=_]|\[TOOL_CALLS\]|\"(?:arguments|parameters)\"\s*:\s*\{", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that should be made."""

    name: str
    arguments: Mapping[str, Any]


def tool(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str] | None = None) -> Tool:
    """A function tool, in the words of OpenAI's API. required: None = all."""
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def arguments_of(call: Call) -> Any:
    """What the text of a call's arguments says; no text is no arguments. Raises ValueError for what is no JSON object."""
    value = json.loads(call.arguments) if call.arguments.strip() else {}
    if not isinstance(value, dict):
        raise ValueError("the arguments are no object")  # noqa: TRY004  it is of what a model wrote, not of our own types
    return value


def invalid(call: Call, tools: Sequence[Tool]) -> str | None:
    """Why a call can't be carried out: no such tool, no JSON, or not by the tool's schema. None if it can."""
    parameters = next((t["function"]["parameters"] for t in tools if t["function"]["name"] == call.name), None)
    if parameters is None:
        return f"there is no tool {shown(call.name)}"
    try:
        arguments = arguments_of(call)
    except (ValueError, RecursionError):
        return f"the arguments are no JSON object: {shown(call.arguments)}"
    error = next(iter(Draft202012Validator(parameters).iter_errors(arguments)), None)
    return None if error is None else f"not by the schema: {shown(error.message)}"


def choice(level: int) -> str | None:
    """The `tool_choice` of a level."""
    return "required" if level <= HELD else None


def judge_calls(answer: Answer, tools: Sequence[Tool], wanted: Sequence[Wanted]) -> Verdict:
    """Exactly the wanted calls, in whatever order; none wanted: none made, not even in words."""
    faults = [invalid(call, tools) for call in answer.calls]
    valid = sum(fault is None for fault in faults)
    return Verdict(_fault(answer, faults, wanted), len(answer.calls), valid)


def _fault(answer: Answer, faults: Sequence[str | None], wanted: Sequence[Wanted]) -> str | None:
    if not wanted:
        if answer.calls:
            return f"called {shown(answer.calls[0].name)}, where no tool fits"
        return "wrote a call in words, where no tool fits" if _CALL_IN_WORDS.search(answer.text) else None
    if broken := next((fault for fault in faults if fault is not None), None):
        return broken
    if len(answer.calls) != len(wanted):
        said = f"; said {shown(answer.text)}" if not answer.calls else ""
        return f"wanted {len(wanted)} call{'s' * (len(wanted) > 1)}, got {len(answer.calls)}{said}"
    left = list(answer.calls)
    for want in wanted:
        found = next((call for call in left if is_wanted(call, want)), None)
        if found is None:
            return f"wanted {want.name}({shown(json.dumps(dict(want.arguments)))}), got {_listed(left)}"
        left.remove(found)
    return None


def is_wanted(call: Call, want: Wanted) -> bool:
    """By name and arguments: text is compared without case and outer space, 2.0 is 2, true is not 1."""
    if call.name != want.name:
        return False
    try:
        return same(arguments_of(call), dict(want.arguments))
    except (ValueError, RecursionError):
        return False


def same(value: Any, wanted: Any) -> bool:
    """Whether two values of JSON mean the same; see is_wanted."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    if isinstance(wanted, str):
        return isinstance(value, str) and " ".join(value.split()).casefold() == wanted.casefold()
    if isinstance(wanted, dict):
        return (
            isinstance(value, dict) and value.keys() == wanted.keys() and all(same(value[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(same, value, wanted))
    return bool(value == wanted)


def _listed(calls: Sequence[Call]) -> str:
    return ", ".join(f"{call.name}({shown(call.arguments)})" for call in calls)
