"""Chat messages as the dialects accept them, brought into the one shape that chat templates are written for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headway.errors import RequestError

Message = dict[str, Any]

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


def normalise(messages: Sequence[Message]) -> list[Message]:
    """A copy of the messages in which

    - `content` is a string: null, absent and "" are the same; a list of text parts is joined with nothing in between;
    - role `developer` is `system` (its newer name);
    - `tool_calls` is absent or a list, not empty, of `{"id", "type": "function", "function": {"name", "arguments"}}` with
      `arguments` an object ("" and null are `{}`; text that isn't a JSON object stays as it is).

    Other keys are kept. Raises RequestError(400) that names the place for anything else, e.g. a part that isn't text.
    """
    if not messages:
        raise RequestError(400, "`messages` is empty: give at least one", param="messages")
    return [_normalise_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def text_of(content: Any, place: str) -> str:
    """The text of a message's content (see `normalise`); `place` names it in errors."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestError(400, f"`{place}` has to be a string or a list of parts", param=place)
    if not content:
        raise RequestError(400, f"`{place}` is an empty list: give at least one part, or a string", param=place)
    return "".join(_text_of_part(part, f"{place}[{i}]") for i, part in enumerate(content))


def _text_of_part(part: Any, place: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise RequestError(400, f"`{place}` has to be an object with `type` and `text`", param=place)
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _TEXT_PARTS:
        raise RequestError(400, f"`{place}` is of type {kind!r}: this model reads text only", param=place)
    text = part.get("text")
    if not isinstance(text, str):
        raise RequestError(400, f"`{place}.text` has to be a string", param=place)
    return text


def _normalise_message(message: Message, place: str) -> Message:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise RequestError(400, f"`{place}` has to be an object with a `role`", param=place)
    role = "system" if message["role"] == "developer" else message["role"]
    plain = {**message, "role": role, "content": text_of(message.get("content"), f"{place}.content")}
    calls = plain.pop("tool_calls", None)
    if calls:
        plain["tool_calls"] = _normalise_calls(calls, f"{place}.tool_calls")
    return plain


def _normalise_calls(calls: Any, place: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise RequestError(400, f"`{place}` has to be a list", param=place)
    plain = []
    for i, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(400, f"`{place}[{i}]` has to have a `function` with a `name`", param=place)
        arguments = _arguments(function.get("arguments"))
        plain.append({**call, "type": "function", "function": {**function, "arguments": arguments}})
    return plain


def _arguments(arguments: Any) -> Any:
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments
