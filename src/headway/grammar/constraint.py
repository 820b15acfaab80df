"""What an output may be, in the words of the grammar library (llguidance's dialect of Lark), and how JSON is laid out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headway.grammar.schema import prepared

_LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


@dataclass(frozen=True, slots=True)
class Constraint:
    """lark: the grammar; equal ones are compiled once. Anything that the API calls a constraint becomes one of these."""

    lark: str


def json_schema(schema: Any) -> Constraint:
    """JSON that a schema allows, of whatever type its root is. Raises ConstraintError that names the keyword or pointer."""
    return Constraint(f"start: {json_rule(schema)}")


def json_object() -> Constraint:
    """Any JSON object."""
    return json_schema({"type": "object"})


def json_rule(schema: Any) -> str:
    """A schema as a terminal of a larger grammar. Raises ConstraintError.

    JSON is written on one line with a space after each comma and colon. White space of the model's own choice is an endless gap
    waiting to happen, and what is fixed need not be guessed: most of an object's tokens are then forced, and cost no step of
    their own.
    """
    return f"%json {json.dumps({**prepared(schema), 'x-guidance': _LAYOUT})}"
