"""Types of fields that are read as anything of a kind and checked later, with their place in the error: what a document of the
API says of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from headway.server.modes import FAST_WORDS, STANDARD_WORDS

Json = dict[str, Any]
STRING: Json = {"type": "string"}


def _object(kind: Json, required: Json, optional: Json | None = None, **more: Any) -> Json:
    """kind: a schema of `type`."""
    properties = {"type": kind, **required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": ["type", *required], **more}


def _list(*items: Json, least: int = 1) -> Json:
    return {"type": "array", "minItems": least, "items": items[0] if len(items) == 1 else {"anyOf": list(items)}}


def _any(*schemas: Json) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": list(schemas)})


ONLY_NULL = WithJsonSchema({"type": "null"})
"""Of a field that is read only to say what to do instead."""

# --- both of OpenAI's -------------------------------------------------------------------------------------------------------

Tier = Annotated[str, WithJsonSchema({"enum": [*STANDARD_WORDS, *FAST_WORDS]})]
BIASES = WithJsonSchema(
    {
        "type": "object",
        "propertyNames": {"pattern": "^[0-9]{1,9}$"},
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
    }
)
"""By token id."""
NotEmpty = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1})]
_TEXT_PART = _object({"enum": ["text", "input_text", "output_text"]}, {"text": STRING})
TextParts = Annotated[list[Json], WithJsonSchema(_list(_TEXT_PART))]
_WORDS: Json = {"enum": ["none", "auto", "required", None]}
_NAMED: Json = {"type": "object", "properties": {"name": STRING}, "required": ["name"]}
ChatToolChoice = Annotated[str | Json | None, _any(_WORDS, _object({"const": "function"}, {"function": _NAMED}))]
ToolChoice = Annotated[str | Json | None, _any(_WORDS, _object({"const": "function"}, {"name": STRING}))]

_IDS = _list({"type": "integer", "minimum": 0})
PROMPT = _any({"type": ["string", "null"]}, _list(STRING), _IDS, _list(_IDS))

# --- Responses --------------------------------------------------------------------------------------------------------------

FunctionType = Annotated[str, WithJsonSchema({"const": "function"})]
FunctionName = Annotated[str | None, WithJsonSchema(STRING)]
FormatType = Annotated[str, WithJsonSchema({"enum": ["text", "json_object", "json_schema"]})]
Background = Annotated[bool | None, WithJsonSchema({"enum": [False, None]})]
_REFUSAL = _object({"const": "refusal"}, {"refusal": STRING})
_TEXT: Json = {"anyOf": [STRING, _list(_TEXT_PART)]}
_ANSWER: Json = {"anyOf": [STRING, _list(_TEXT_PART, _REFUSAL)]}


def _message(roles: list[str], content: Json) -> Json:
    """Its type may be left out."""
    described = _object({"const": "message"}, {"role": {"enum": roles}, "content": content})
    return {**described, "required": ["role", "content"]}


_ARGUMENTS: Json = {"type": ["string", "null"], "description": "JSON; empty means {}"}
_ITEMS = _list(
    _message(["user", "system", "developer"], _TEXT),
    _message(["assistant"], _ANSWER),
    _object({"const": "function_call"}, {"call_id": STRING, "name": STRING}, {"arguments": _ARGUMENTS}),
    _object({"const": "function_call_output"}, {"call_id": STRING, "output": _TEXT}),
    _object({"const": "reasoning"}, {}, description="Left out."),
    least=0,
)
Input = Annotated[str | list[Json] | None, _any({"type": ["string", "null"]}, _ITEMS)]

# --- Messages ---------------------------------------------------------------------------------------------------------------

_TEXT_BLOCK = _object({"const": "text"}, {"text": STRING})
_RESULT: Json = {"content": {"anyOf": [STRING, _list(_TEXT_BLOCK, least=0)]}, "is_error": {"type": ["boolean", "null"]}}
_BLOCKS = _list(
    {**_TEXT_BLOCK, "description": "In anybody's turn."},
    _object({"const": "tool_result"}, {"tool_use_id": STRING}, _RESULT, description="In the user's."),
    _object({"const": "tool_use"}, {"id": STRING, "name": STRING}, {"input": {"type": "object"}}, description="In a model's."),
    _object({"enum": ["thinking", "redacted_thinking"]}, {}, description="In a model's; left out."),
)
Content = str | Annotated[list[Json], WithJsonSchema(_BLOCKS)]
SystemContent = str | Annotated[list[Json], WithJsonSchema(_list(_TEXT_BLOCK, least=0))]
CustomType = Annotated[str | None, WithJsonSchema({"enum": ["custom", None]})]
InputSchema = Annotated[Json | None, WithJsonSchema({"type": "object"})]
