"""Prompts from a user's file: text, JSON lines of several kinds, or a conversation dump such as ShareGPT's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import UsageError

Messages = list[dict[str, Any]]
CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English, where no tokenizer is given."""
HUMANS, MODELS = ("human", "user"), ("gpt", "assistant", "chatgpt", "bing", "bard")
LENGTH_KEYS = ("output_tokens", "output_tokens_count", "max_tokens", "output_length")
TEXT_KEYS = ("prompt", "text", "instruction", "question")


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """output_tokens: of its answer, if the file tells, by a number or by the answer itself (`is_estimated`, if its tokens could
    only be guessed)."""

    messages: Messages
    output_tokens: int | None = None
    is_estimated: bool = False


def read_prompts(path: Path, count_tokens: Callable[[str], int] | None = None) -> list[GivenPrompt]:
    """One prompt at least. A line of text is a prompt; a JSON object (of a line, or of a list that is the whole file) has
    `prompt` or `text`, or `messages` as in OpenAI's API, or `conversations` as ShareGPT has them: the first human turn is
    asked, and the answer that follows tells how long one is wanted. Raises UsageError that names the file and the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text, so it holds no prompts") from None
    prompts = [prompt for place, value in _values(text, path) if (prompt := _prompt(value, f"{path}, {place}", count_tokens))]
    if not prompts:
        raise UsageError(f"{path} holds no prompts")
    return prompts


def _values(text: str, path: Path) -> Iterable[tuple[str, Any]]:
    begin = text.lstrip()[:1]
    if begin == "[":
        return [(f"entry {number}", value) for number, value in enumerate(_json(text, str(path)), 1)]
    lines = [(f"line {number}", line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if begin == "{":
        return [(place, _json(line, f"{path}, {place}")) for place, line in lines]
    return lines


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{place}: no JSON: {error}") from None


def _prompt(value: Any, place: str, count_tokens: Callable[[str], int] | None) -> GivenPrompt | None:
    """None for a conversation that no human turn begins."""
    if isinstance(value, str):
        return GivenPrompt(_asked(value))
    if not isinstance(value, Mapping):
        raise UsageError(f"{place}: it should be text or an object, not {type(value).__name__}")
    length = next((value[key] for key in LENGTH_KEYS if value.get(key) is not None), None)
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise UsageError(f"{place}: the output's length is {length!r}; it should be a whole number above 0")
    if isinstance(turns := value.get("conversations"), list):
        return _conversation(turns, length, count_tokens)
    if isinstance(messages := value.get("messages"), list):
        if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
            raise UsageError(f"{place}: messages should be objects with role and content")
        return GivenPrompt(_without_answer(messages), length)
    text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), None)
    if text is None:
        raise UsageError(f"{place}: it should have one of {', '.join(TEXT_KEYS)}, messages, conversations")
    return GivenPrompt(_asked(text), length)


def _conversation(turns: Sequence[Any], length: int | None, count_tokens: Callable[[str], int] | None) -> GivenPrompt | None:
    said = [
        (str(t.get("from", t.get("role"))), str(t.get("value", t.get("content", "")))) for t in turns if isinstance(t, dict)
    ]
    if not said or said[0][0] not in HUMANS or not said[0][1].strip():
        return None
    if length is None and len(said) > 1 and said[1][0] in MODELS and said[1][1]:
        answer = said[1][1]
        if count_tokens is not None:
            return GivenPrompt(_asked(said[0][1]), max(1, count_tokens(answer)))
        return GivenPrompt(_asked(said[0][1]), max(1, len(answer) // CHARACTERS_PER_TOKEN), is_estimated=True)
    return GivenPrompt(_asked(said[0][1]), length)


def _without_answer(messages: Messages) -> Messages:
    """A dialogue that ends with the assistant's turn is asked up to that."""
    return messages[:-1] if len(messages) > 1 and messages[-1]["role"] == "assistant" else messages


def _asked(text: str) -> Messages:
    return [{"role": "user", "content": text}]
