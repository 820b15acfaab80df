"""Calls of tools that a model is made to write, in the form that it was trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.grammar.constraint import Constraint, json_rule
from headway.grammar.errors import ConstraintError


@dataclass(frozen=True, slots=True)
class CallForm:
    """How calls stand in a text: `begin`, the calls with `between` among them, `end`. Each is an object with the keys "name"
    and `arguments`. special: what stands before `begin`; many vocabularies hold it as one special token."""

    begin: str
    between: str
    end: str
    arguments: str = "arguments"
    special: str = ""


CALL_FORMS: Mapping[str, CallForm] = {
    "hermes": CallForm("<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"),
    "llama3": CallForm("", "; ", "", arguments="parameters"),
    "mistral": CallForm("[", ", ", "]", special="[TOOL_CALLS]"),
}


def forced_calls(
    tools: Sequence[Mapping[str, Any]],
    choice: str | None,
    form: CallForm,
    *,
    parallel: bool,
    special_token: Callable[[str], int | None] = lambda text: None,
) -> Constraint:
    """Only calls of these tools, with arguments that fit their schemas: one, or with `parallel` one or more.

    tools: as OpenAI writes them (`{"type": "function", "function": {"name", "parameters"}}`); choice: the name of the one to
    call, None: any. special_token: the id of a special token, None if a text isn't one (see special_token_of). Raises
    ConstraintError.
    """
    functions = [tool["function"] for tool in tools]
    wanted = [function for function in functions if choice in (None, function["name"])]
    if not wanted:
        names = ", ".join(function["name"] for function in functions) or "none"
        raise ConstraintError(f"there is no tool named {choice!r}; the tools are: {names}")
    rules: list[str] = []
    for i, function in enumerate(wanted):
        head = f'{{"name": {_json(function["name"])}, "{form.arguments}": '
        rules += [f'call_{i}: {_json(head)} arguments_{i} "}}"', f"arguments_{i}: {json_rule(_closed(function))}"]
    any_call = "call: " + " | ".join(f"call_{i}" for i in range(len(wanted)))
    more = f"({_json(form.between)} call)*" if parallel else ""
    begin = (_special(form.special, special_token), _json(form.begin) if form.begin else "")
    start = " ".join(filter(None, ["start:", *begin, "call", more, _json(form.end) if form.end else ""]))
    return Constraint("\n".join([start, any_call, *rules]))


def special_token_of(token_bytes: Sequence[bytes], encode: Callable[[str], list[int]]) -> Callable[[str], int | None]:
    """For forced_calls: which texts a tokenizer reads as one token without text of its own."""

    def find(text: str) -> int | None:
        ids = encode(text)
        return ids[0] if len(ids) == 1 and not token_bytes[ids[0]] else None

    return find


def _closed(function: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a function's arguments. What it doesn't name is left out, unless it asks for it: no function expects it."""
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise ConstraintError(f"the parameters of the function {function['name']!r} must be a JSON schema object")
    closed = {"type": "object", **parameters}
    open_ended = {"additionalProperties", "patternProperties", "$ref", "anyOf", "oneOf", "allOf"}
    return closed if open_ended & closed.keys() else {**closed, "additionalProperties": False}


def _special(text: str, special_token: Callable[[str], int | None]) -> str:
    token = special_token(text) if text else None
    return f"<[{token}]>" if token is not None else _json(text) if text else ""


def _json(text: str) -> str:
    """As a string of JSON, which is also how the grammar writes strings."""
    return json.dumps(text, ensure_ascii=False)
