"""Anthropic's turns of content blocks, in the one form that chat templates are written for (`text/messages.py`).

- Text blocks of a turn are joined with nothing in between; turns of the same role that follow each other become one, as in
  Anthropic's API, with an empty line in between.
- A tool_result is a turn of role `tool`, at its place among the text of its turn; a tool_use a call of its turn.
- Thinking of earlier turns is left out.
- `x-anthropic-billing-header`, with which Claude Code begins the system text, is left out too: it isn't meant for a model, and
  it changes with every request, so that no prompt would begin like the one before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headway.errors import RequestError
from headway.server.anthropic.schemas import ToolDefinition, Turn
from headway.server.described import Content
from headway.text.messages import Message

Block = dict[str, Any]
_BILLING = re.compile(r"\Ax-anthropic-billing-header:[^\n]*\n*")
_THINKING = ("thinking", "redacted_thinking")


def template_messages(system: Content | None, turns: Sequence[Turn]) -> list[Message]:
    """Raises RequestError 400 that names the block for what isn't text."""
    messages: list[Message] = []
    for index, block in enumerate(_blocks(system or "", "system")):
        text = _BILLING.sub("", _text(block, f"system[{index}]"))
        if text:
            _add(messages, "system", text, joins=bool(messages))
    names: dict[str, str] = {}
    for index, turn in enumerate(turns):
        place = f"messages[{index}].content"
        blocks = _blocks(turn.content, place)
        if turn.role == "assistant":
            _add_assistant(messages, blocks, place, names)
        else:
            _add_other(messages, turn.role, blocks, place, names)
    return messages


def prefill_of(turns: Sequence[Turn]) -> str | None:
    """The beginning of the answer, where the last turn is the assistant's own text; that turn isn't part of the chat then."""
    if turns[-1].role != "assistant":
        return None
    place = f"messages[{len(turns) - 1}].content"
    blocks = [block for block in _blocks(turns[-1].content, place) if block.get("type") not in _THINKING]
    if any(block.get("type") == "tool_use" for block in blocks):
        return None
    text = "".join(_text(block, f"{place}[{index}]") for index, block in enumerate(blocks))
    if text != text.rstrip():
        message = "the last turn is the assistant's: its text is continued and must not end with white space"
        raise RequestError(400, f"'{place}': {message}.", param=place)
    return text


def template_tools(tools: Sequence[ToolDefinition] | None) -> list[dict[str, Any]]:
    """In OpenAI's form, which templates know. Raises RequestError 400 for tools that only Anthropic can run or describe."""
    return [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools or ())]


def _tool(tool: ToolDefinition, place: str) -> dict[str, Any]:
    if tool.type not in (None, "custom"):
        message = f"'{place}' is of type {tool.type!r}, which this server doesn't have; give tools with an 'input_schema'."
        raise RequestError(400, message, param=place)
    if tool.input_schema is None:
        raise RequestError(400, f"'{place}.input_schema' is missing; it must be a JSON schema object.", param=place)
    described = {} if tool.description is None else {"description": tool.description}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": tool.input_schema}}


def _blocks(content: Content, place: str) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not content:
        raise RequestError(400, f"'{place}' is an empty list; it must hold at least one block, or be a string.", param=place)
    return content


def _add_assistant(messages: list[Message], blocks: list[Block], place: str, names: dict[str, str]) -> None:
    text, calls = "", []
    for index, block in enumerate(blocks):
        where = f"{place}[{index}]"
        if block.get("type") == "tool_use":
            call_id, name, given = block.get("id"), block.get("name"), block.get("input", {})
            if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(given, dict):
                raise RequestError(400, f"'{where}' must have an id, a name and an input that is an object.", param=where)
            names[call_id] = name
            calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": given}})
        elif block.get("type") not in _THINKING:
            text += _text(block, where)
    message = _add(messages, "assistant", text)
    if calls:
        message.setdefault("tool_calls", []).extend(calls)


def _add_other(messages: list[Message], role: str, blocks: list[Block], place: str, names: dict[str, str]) -> None:
    text: str | None = None
    for index, block in enumerate(blocks):
        where = f"{place}[{index}]"
        if block.get("type") == "tool_result" and role == "user":
            if text is not None:
                _add(messages, role, text)
                text = None
            messages.append(_result(block, where, names))
        else:
            text = (text or "") + _text(block, where)
    if text is not None:
        _add(messages, role, text)


def _add(messages: list[Message], role: str, text: str, *, joins: bool = False) -> Message:
    """joins: it is part of the same text as the message before."""
    last = messages[-1] if messages else None
    if last is None or last["role"] != role:
        messages.append({"role": role, "content": text})
    elif text:
        last["content"] += text if joins or not last["content"] else f"\n\n{text}"
    return messages[-1]


def _result(block: Block, place: str, names: dict[str, str]) -> Message:
    call_id, content = block.get("tool_use_id"), block.get("content", "")
    if not isinstance(call_id, str):
        raise RequestError(400, f"'{place}.tool_use_id' must be a string.", param=place)
    if not isinstance(content, str | list) or not all(isinstance(part, dict) for part in content if isinstance(content, list)):
        raise RequestError(400, f"'{place}.content' must be a string or a list of text blocks.", param=place)
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(_text(part, f"{place}.content[{index}]") for index, part in enumerate(parts))
    if not isinstance(block.get("is_error"), bool | None):
        raise RequestError(400, f"'{place}.is_error' must be true or false.", param=place)
    if block.get("is_error"):
        text = f"Error: {text}"
    name = {"name": names[call_id]} if call_id in names else {}
    return {"role": "tool", "tool_call_id": call_id, **name, "content": text}


def _text(block: Block, place: str) -> str:
    kind, text = block.get("type"), block.get("text")
    if kind != "text":
        raise RequestError(400, f"'{place}' is of type {kind!r}: this model reads text only.", param=place)
    if not isinstance(text, str):
        raise RequestError(400, f"'{place}.text' must be a string.", param=place)
    return text
