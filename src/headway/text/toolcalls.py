"""Tool calls in a model's output, in the format that its chat template taught it.

- Hermes, which ChatML models and Qwen write: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, once per call;
- Llama 3: `{"name": ..., "parameters": {...}}`, the whole output or after `<|python_tag|>`, several separated by `;`;
- Mistral: `[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]`, or `[TOOL_CALLS]name[ARGS]{...}` in newer models.

What turns out to be no call stays text, its markers too. Small slips of small models are overlooked: a closing brace or marker
that is missing, a brace too many. White space around calls is layout, not text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from headway.text.parts import CallArguments, CallStart, Part, Text

FormatName = Literal["hermes", "llama3", "mistral"]


@dataclass(frozen=True, slots=True)
class Format:
    """opening, closing: what stands around calls ("" = nothing). separators: what stands between two calls of one opening.
    bare: an output that begins with an object that is a call of a known tool needs no opening."""

    opening: str
    closing: str
    separators: str
    bare: bool = False


FORMATS: dict[FormatName, Format] = {
    "hermes": Format("<tool_call>", "</tool_call>", ","),
    "llama3": Format("<|python_tag|>", "", ";,", bare=True),
    "mistral": Format("[TOOL_CALLS]", "]", ","),
}

_HEAD = re.compile(r'\s*\[?\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')
"""A call up to its arguments, if its keys come in the usual order: from here on it can be passed on as it comes."""
_NAMED = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?\s*(?=\{)")
"""The name before the arguments, as newer models of Mistral write it."""
_MAY_BE_NAMED = re.compile(r"\s*(?:[\w.-]+\s*(?:\[[\w\]]*)*\s*)?")
_MAY_BE_OBJECT = re.compile(r'\s*\[?\s*(?:\{\s*(?:"(?P<key>[^"]*)(?P<rest>.*))?)?', re.DOTALL)
_KEYS = ("name", "arguments", "parameters", "type", "id", "function")
"""What the first key of a call may be."""

_State = Literal["text", "call", "arguments", "rest", "between", "over"]


class ToolReader:
    """A Reader of one output. tools: the names that can be called. parallel: whether more than one call is let through."""

    def __init__(self, name: FormatName, tools: Collection[str], *, parallel: bool = True) -> None:
        self._format = FORMATS[name]
        self._named = name == "mistral"
        self._tools = tools
        self._parallel = parallel
        self._state: _State = "text"
        self._buffer = ""
        self._at_start = True  # nothing but white space so far
        self._opened = ""  # what stood before the call that is being read
        self._after_call = False
        self._in_object = False
        self._nesting = _Nesting()

    def push(self, text: str) -> list[Part]:
        self._buffer += text
        parts: list[Part] = []
        while self._step(parts):
            pass
        return parts

    def flush(self) -> list[Part]:
        """A call that is cut short while its name isn't known is text, unless it would have been one more call."""
        held, self._buffer = self._buffer, ""
        if self._state == "call":
            held = self._opened + held
        elif self._state != "text":
            return []
        if self._after_call:
            held = held.strip()
            if self._state == "call" or self._format.opening.startswith(held):
                return []
        return [Text(held)] if held else []

    def _step(self, parts: list[Part]) -> bool:
        """One step forward in the buffer; False when more text is needed for the next."""
        if not self._buffer:
            return False
        match self._state:
            case "text":
                return self._in_text(parts)
            case "call":
                return self._in_call(parts)
            case "arguments":
                return self._in_arguments(parts)
            case "rest":
                return self._in_rest()
            case "between":
                return self._between()
            case "over":
                self._buffer = ""
                return False

    def _in_text(self, parts: list[Part]) -> bool:
        if self._at_start and self._format.bare and self._buffer.lstrip().startswith("{"):
            self._begin_call(self._buffer[: -len(self._buffer.lstrip())], self._buffer.lstrip())
            return True
        opening = self._format.opening
        start = self._buffer.find(opening)
        if start >= 0:
            before = self._buffer[:start]
            self._say(parts, before.rstrip())
            self._begin_call(before[len(before.rstrip()) :] + opening, self._buffer[start + len(opening) :])
            return True
        may_open = next((n for n in range(len(opening) - 1, 0, -1) if self._buffer.endswith(opening[:n])), 0)
        sure = self._buffer[: len(self._buffer) - may_open].rstrip()
        self._say(parts, sure)
        self._buffer = self._buffer[len(sure) :]
        return False

    def _say(self, parts: list[Part], text: str) -> None:
        if not text.strip():
            return
        if self._after_call:
            text, self._after_call = text.lstrip(), False
        self._at_start = False
        parts.append(Text(text))

    def _begin_call(self, opened: str, rest: str) -> None:
        self._opened, self._buffer = opened, rest
        self._nesting = _Nesting()
        self._state = "call"

    def _in_call(self, parts: list[Part]) -> bool:
        if head := _HEAD.match(self._buffer):
            return self._start_arguments(parts, head, in_object=True)
        if self._named and (head := _NAMED.match(self._buffer)):
            return self._start_arguments(parts, head, in_object=False)
        if not _may_be_object(self._buffer) and not (self._named and _MAY_BE_NAMED.fullmatch(self._buffer)):
            return self._no_call(parts)
        end = self._nesting.end_in(self._buffer)
        if end is None:
            return False
        call = _read_call(self._buffer[:end].lstrip().removeprefix("["))
        if call is None or not self._known(call[0]):
            return self._no_call(parts)
        parts += (CallStart(call[0]), CallArguments(call[1]))
        self._buffer = self._buffer[end:]
        self._end_call()
        return True

    def _start_arguments(self, parts: list[Part], head: re.Match[str], *, in_object: bool) -> bool:
        try:
            name = json.loads(head[1]) if in_object else head[1]
        except ValueError:
            return self._no_call(parts)
        if not self._known(name):
            return self._no_call(parts)
        parts.append(CallStart(name))
        self._buffer = self._buffer[head.end() :]
        self._in_object = in_object
        self._nesting = _Nesting()
        self._state = "arguments"
        return True

    def _known(self, name: str) -> bool:
        """Without an opening only a tool's name tells a call from any other JSON."""
        return bool(name) and (bool(self._opened.strip()) or name in self._tools)

    def _no_call(self, parts: list[Part]) -> bool:
        opened = self._opened
        if self._after_call:
            opened, self._after_call = opened.lstrip(), False
        parts += [Text(opened)] if opened else []
        self._at_start = False
        self._state = "text"
        return True

    def _in_arguments(self, parts: list[Part]) -> bool:
        end = self._nesting.end_in(self._buffer)
        parts.append(CallArguments(self._buffer[:end]))
        if end is None:
            self._buffer = ""
            self._nesting.forget()
            return False
        self._buffer = self._buffer[end:]
        if self._in_object:
            self._state = "rest"
        else:
            self._end_call()
        return True

    def _in_rest(self) -> bool:
        """The end of the object that held the arguments: its brace, perhaps after more keys; perhaps it is missing."""
        rest = self._buffer.lstrip()
        if not rest:
            return False
        if rest[0] == ",":
            end = _Nesting(depth=1).end_in(rest)
            if end is None:
                return False
            rest = rest[end:]
        self._buffer = rest.removeprefix("}")
        self._end_call()
        return True

    def _end_call(self) -> None:
        self._after_call, self._at_start = True, False
        self._state = "between" if self._parallel else "over"

    def _between(self) -> bool:
        """What may stand after a call: the closing, or a separator and another call."""
        closing = self._format.closing
        rest = self._buffer.lstrip(" \t\r\n}")
        if not rest or (rest != closing and closing.startswith(rest)):
            return False
        if closing and rest.startswith(closing):
            self._buffer, self._state = rest.removeprefix(closing), "text"
            return True
        after = rest.lstrip(self._format.separators + " \t\r\n")
        if not after:
            return False
        if after.startswith("{"):
            self._begin_call(rest[: len(rest) - len(after)] or self._opened, after)
            return True
        self._buffer, self._state = rest, "text"
        return True


class _Nesting:
    """Finds where a JSON object ends in a text that grows: each character is looked at once."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._in_string = False
        self._escaped = False
        self._seen = 0

    def end_in(self, text: str) -> int | None:
        """The index behind its last brace, None if that hasn't come. `text`: that of the last call, with more at its end."""
        for index in range(self._seen, len(text)):
            char = text[index]
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif char == "\\":
                    self._escaped = True
                elif char == '"':
                    self._in_string = False
            elif char == '"':
                self._in_string = True
            elif char == "{":
                self._depth += 1
            elif char == "}":
                self._depth -= 1
                if self._depth <= 0:
                    return index + 1
        self._seen = len(text)
        return None

    def forget(self) -> None:
        """What has been looked at so far will not be part of the text any more."""
        self._seen = 0


def _may_be_object(text: str) -> bool:
    """Whether more text can make a call object of this."""
    begun = _MAY_BE_OBJECT.fullmatch(text)
    if begun is None:
        return False
    key = begun["key"]
    return not key or (key in _KEYS if begun["rest"] else any(each.startswith(key) for each in _KEYS))


def _read_call(text: str) -> tuple[str, str] | None:
    """Name, and arguments as JSON text, of a whole call object; None if it isn't one."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if arguments is None or arguments == "":
        return name, "{}"
    if isinstance(arguments, str):  # JSON within JSON
        try:
            return (name, arguments) if isinstance(json.loads(arguments), dict) else None
        except (ValueError, RecursionError):
            return None
    return (name, json.dumps(arguments, ensure_ascii=False)) if isinstance(arguments, dict) else None
