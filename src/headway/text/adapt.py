"""What a chat template can say of tools and late system messages, and how to say what it can't.

Many templates leave tools, tool calls or tool results out of the prompt without a word, and some refuse a system message
after the first. What a template can do is found out by rendering probes, not by searching its source. What it can't is
written out in plain text, in the form that most small models were trained on (Hermes):

- the tools: in the first system message (one is added if there is none), as JSON lines within `<tools>`;
- a call: at the end of its assistant turn, as `<tool_call>\n{"name": ..., "arguments": ...}\n</tool_call>`;
- a result: a turn of role `tool`, or, if the template drops or refuses that role, a `user` turn that wraps it in
  `<tool_response>` (results that follow each other share one turn);
- a late system message: it joins the first one, after an empty line; if the template takes no system message at all, that
  one opens the first user turn.

What the model then writes is read by `toolcalls.py`, in the format of its template's calls, or in the one written out here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headway.errors import RequestError
from headway.text.messages import Message
from headway.text.toolcalls import FORMATS, FormatName

Tool = dict[str, Any]
Expand = Callable[[Sequence[Message], Sequence[Tool] | None], str]

_PROBE = "probe0000"  # nine letters and digits: some templates check the length of call ids
_USER: Message = {"role": "user", "content": "a"}
_SYSTEM: Message = {"role": "system", "content": _PROBE}
_TOOL: Tool = {
    "type": "function",
    "function": {"name": _PROBE, "description": "", "parameters": {"type": "object", "properties": {}}},
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the template itself puts into the prompt. calls: with `arguments` as an object, as JSON text, or not at all.
    system: where it takes system messages. format: how the model will write calls: as its template does, or as it is told."""

    tools: bool
    calls: Literal["object", "text", "none"]
    results: bool
    system: Literal["anywhere", "first", "nowhere"]
    format: FormatName


def probe(expand: Expand) -> Abilities:
    """Find out by rendering a few tiny chats."""

    def says(messages: list[Message], tools: list[Tool] | None = None) -> bool:
        try:
            return _PROBE in expand(messages, tools)
        except RequestError:
            return False

    calls: Literal["object", "text", "none"] = "none"
    if says([_USER, _probe_call({}), _result("")]):
        calls = "object"
    elif says([_USER, _probe_call("{}"), _result("")]):
        calls = "text"
    system: Literal["anywhere", "first", "nowhere"] = "nowhere"
    if says([_USER, _assistant("b"), _SYSTEM, _USER]):
        system = "anywhere"
    elif says([_SYSTEM, _USER]):
        system = "first"
    call = _probe_call({} if calls == "object" else "{}", name="b") if calls != "none" else _assistant("b")
    tools = says([_USER], [_TOOL])
    return Abilities(
        tools=tools,
        calls=calls,
        results=says([_USER, call, _result(_PROBE)]),
        system=system,
        format=_format(expand([_USER, call, _result("")], None)) if tools and calls != "none" else "hermes",
    )


def _format(with_call: str) -> FormatName:
    if FORMATS["mistral"].opening in with_call:
        return "mistral"
    is_llama = FORMATS["llama3"].opening in with_call or re.search(r'"name"\s*:\s*"b"\s*,\s*"parameters"', with_call)
    return "llama3" if is_llama else "hermes"


def adapt(
    messages: Sequence[Message], tools: Sequence[Tool] | None, abilities: Abilities
) -> tuple[list[Message], Sequence[Tool] | None]:
    """Rewrite normalised messages so that nothing of them is lost. Messages are replaced, never changed in place."""
    adapted = [_write_calls(message, abilities.calls) for message in messages]
    if not abilities.results:
        adapted = _results_as_user(adapted)
    if abilities.system != "anywhere":
        adapted = _join_system(adapted)
    if tools and not abilities.tools:
        adapted, tools = _write_tools(adapted, tools), None
    if abilities.system == "nowhere":
        adapted = _system_into_user(adapted)
    return adapted, tools or None


def adapt_more(before: Sequence[Message], more: Sequence[Message], abilities: Abilities) -> list[Message] | None:
    """What `adapt` makes of the last messages where they follow those before them, which it then makes the same of as without
    them; None if it doesn't. more: normalised, not empty."""
    if any(message["role"] == "system" for message in more):
        return None
    if all(message["role"] in ("system", "developer") for message in before):
        return None
    if not abilities.results and before[-1]["role"] == more[0]["role"] == "tool":
        return None
    adapted = [_write_calls(message, abilities.calls) for message in more]
    return adapted if abilities.results else _results_as_user(adapted)


def to_json(value: Any) -> str:
    """JSON as templates and models expect it: no escapes for letters beyond ASCII."""
    return json.dumps(value, ensure_ascii=False)


def _write_calls(message: Message, how: Literal["object", "text", "none"]) -> Message:
    calls = message.get("tool_calls")
    if not calls or how == "object":
        return message
    if how == "text":
        return {**message, "tool_calls": [_with_text_arguments(call) for call in calls]}
    written = [f"<tool_call>\n{to_json(_name_and_arguments(call))}\n</tool_call>" for call in calls]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "content": "\n".join([message["content"], *written] if message["content"] else written)}


def _with_text_arguments(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"]
    text = arguments if isinstance(arguments, str) else to_json(arguments)
    return {**call, "function": {**call["function"], "arguments": text}}


def _name_and_arguments(call: dict[str, Any]) -> dict[str, Any]:
    return {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}


def _results_as_user(messages: list[Message]) -> list[Message]:
    adapted: list[Message] = []
    after_result = False
    for message in messages:
        is_result = message["role"] == "tool"
        if not is_result:
            adapted.append(message)
        else:
            wrapped = f"<tool_response>\n{message['content']}\n</tool_response>"
            if after_result:
                wrapped = adapted.pop()["content"] + "\n" + wrapped
            adapted.append({"role": "user", "content": wrapped})
        after_result = is_result
    return adapted


def _join_system(messages: list[Message]) -> list[Message]:
    system = [message for message in messages if message["role"] == "system"]
    if not system:
        return messages
    first = {**system[0], "content": "\n\n".join(message["content"] for message in system)}
    return [first, *(message for message in messages if message["role"] != "system")]


def _system_into_user(messages: list[Message]) -> list[Message]:
    if not messages or messages[0]["role"] != "system":
        return messages
    system, *rest = messages
    if not rest or rest[0]["role"] != "user":
        return [{**system, "role": "user"}, *rest]
    return [{**rest[0], "content": f"{system['content']}\n\n{rest[0]['content']}"}, *rest[1:]]


def _write_tools(messages: list[Message], tools: Sequence[Tool]) -> list[Message]:
    lines = "\n".join(to_json(tool) for tool in tools)
    text = (
        f"You can call the functions listed here, one JSON object a line:\n<tools>\n{lines}\n</tools>\n"
        "To call a function, write its name and its arguments as JSON within these tags:\n"
        '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'
    )
    if messages and messages[0]["role"] == "system":
        first, rest = messages[0], messages[1:]
        return [{**first, "content": f"{first['content']}\n\n{text}" if first["content"] else text}, *rest]
    return [{"role": "system", "content": text}, *messages]


def _probe_call(arguments: dict[str, Any] | str, name: str = _PROBE) -> Message:
    call = {"id": "abcdefgh0", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _result(content: str) -> Message:
    return {"role": "tool", "tool_call_id": "abcdefgh0", "name": "b", "content": content}
