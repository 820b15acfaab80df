"""The items of a conversation: checked, brought into the form in which they are kept, and made into messages for a template.

- Text parts of a message are joined with nothing in between.
- Calls join the assistant's message before them, or are one of their own; an output is a turn of role `tool`.
- Reasoning of earlier turns is left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from headway.errors import RequestError
from headway.server.body import show
from headway.text.messages import Message

Item = dict[str, Any]
ROLES = ("user", "assistant", "system", "developer")
_TEXTS = ("input_text", "output_text", "text")
_CARRIED_BY = {"item_reference": "send the item itself, or 'previous_response_id'"}


def read_items(given: str | Sequence[Any] | None) -> list[Item]:
    """As a client wrote them, or one user's message that is a string. Each gets an id if it has none. Raises RequestError 400
    that names the item for what isn't text and for calls of tools that this server doesn't have."""
    if isinstance(given, str):
        return [_message({"role": "user", "content": given}, "input")]
    items = []
    for index, item in enumerate(given or ()):
        place = f"input[{index}]"
        kind = item.get("type", "message")
        if kind == "message":
            items.append(_message(item, place))
        elif kind == "function_call":
            items.append(_call(item, place))
        elif kind == "function_call_output":
            items.append(_output(item, place))
        elif kind != "reasoning":
            hint = _CARRIED_BY.get(kind, "take messages, function calls and their outputs") if isinstance(kind, str) else ""
            raise _refused(place, f"is of type {show(kind)}, which this server doesn't have; {hint}")
    return items


def template_messages(items: Iterable[Item]) -> list[Message]:
    """Of items as `read_items` gives them, or as a response had them for its output."""
    messages: list[Message] = []
    names: dict[str, str] = {}
    for item in items:
        if item["type"] == "message":
            messages.append({"role": item["role"], "content": "".join(_part_text(part) for part in item["content"])})
        elif item["type"] == "function_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": ""})
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages[-1].setdefault("tool_calls", []).append(call)
            names[item["call_id"]] = item["name"]
        else:
            output, call_id = item["output"], item["call_id"]
            text = output if isinstance(output, str) else "".join(_part_text(part) for part in output)
            name = {"name": names[call_id]} if call_id in names else {}
            messages.append({"role": "tool", "tool_call_id": call_id, **name, "content": text})
    return messages


def _part_text(part: Item) -> str:
    text: str = part["refusal"] if part["type"] == "refusal" else part["text"]
    return text


def _message(item: Item, place: str) -> Item:
    role, content = item.get("role"), item.get("content")
    if role not in ROLES:
        raise _refused(f"{place}.role", f"must be one of {', '.join(ROLES)}, not {show(role)}")
    kind = "output_text" if role == "assistant" else "input_text"
    parts = _parts(content, f"{place}.content", kind)
    return {"type": "message", "id": _id(item, "msg"), "role": role, "status": "completed", "content": parts}


def _call(item: Item, place: str) -> Item:
    for field in ("call_id", "name"):
        if not isinstance(item.get(field), str):
            raise _refused(f"{place}.{field}", f"must be a string, not {show(item.get(field))}")
    arguments = "{}" if item.get("arguments") in (None, "") else item["arguments"]
    if not isinstance(arguments, str):
        raise _refused(f"{place}.arguments", f"must be a string of JSON, not {show(arguments)}")
    call = {"call_id": item["call_id"], "name": item["name"], "arguments": arguments}
    return {"type": "function_call", "id": _id(item, "fc"), **call, "status": "completed"}


def _output(item: Item, place: str) -> Item:
    call_id, output = item.get("call_id"), item.get("output")
    if not isinstance(call_id, str):
        raise _refused(f"{place}.call_id", f"must be a string, not {show(call_id)}")
    if not isinstance(output, str):
        output = _parts(output, f"{place}.output", "input_text")
    return {
        "type": "function_call_output",
        "id": _id(item, "fco"),
        "call_id": call_id,
        "output": output,
        "status": "completed",
    }


def _parts(content: Any, place: str, kind: str) -> list[Item]:
    """A list of text parts of this kind."""
    if isinstance(content, str):
        return [_text_part(content, kind)]
    if not isinstance(content, list) or not content:
        raise _refused(place, f"must be a string or a list of at least one text part, not {show(content)}")
    return [_part(part, f"{place}[{index}]", kind) for index, part in enumerate(content)]


def _part(part: Any, place: str, kind: str) -> Item:
    if not isinstance(part, dict):
        raise _refused(place, f"must be an object with type and text, not {show(part)}")
    given = part.get("type")
    if given == "refusal" and kind == "output_text":
        if not isinstance(part.get("refusal"), str):
            raise _refused(f"{place}.refusal", f"must be a string, not {show(part.get('refusal'))}")
        return {"type": "refusal", "refusal": part["refusal"]}
    if given not in _TEXTS:
        raise _refused(place, f"is of type {show(given)}: this model reads text only")
    if not isinstance(part.get("text"), str):
        raise _refused(f"{place}.text", f"must be a string, not {show(part.get('text'))}")
    return _text_part(part["text"], kind)


def _text_part(text: str, kind: str) -> Item:
    more: Item = {"annotations": [], "logprobs": []} if kind == "output_text" else {}
    return {"type": kind, "text": text, **more}


def _id(item: Item, prefix: str) -> str:
    given = item.get("id")
    return given if isinstance(given, str) and given else f"{prefix}_{uuid.uuid4().hex}"


def _refused(place: str, what: str) -> RequestError:
    return RequestError(400, f"'{place}' {what}.", param=place)
