"""A user's own prompts, from a file."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from headway.distill.prompts import Given, Messages, asked
from headway.errors import UsageError

SHAPES = '{"messages": [...]} or {"prompt": "..."}'


def read_prompts(path: Path, seed: int = 0) -> Given:
    """JSON lines of {"messages": [...]} or {"prompt": "..."}, or plain text: a prompt for each paragraph, or for each line
    where no line is empty. Raises UsageError."""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--data: {path} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"--data: {path} is not UTF-8 text (at byte {error.start})") from None
    prompts = _from_json(text, path) if _is_json(text, path) else _from_text(text)
    if not prompts:
        raise UsageError(f"--data: there are no prompts in {path}; it takes JSON lines of {SHAPES}, or plain text")
    return Given(prompts, f"{path.name} ({hashlib.sha256(raw).hexdigest()[:16]})", seed)


def _is_json(text: str, path: Path) -> bool:
    return path.suffix in (".jsonl", ".ndjson") or text.lstrip().startswith("{")


def _from_text(text: str) -> list[Messages]:
    text = text.replace("\r\n", "\n").strip()
    pieces = re.split(r"\n[ \t]*\n", text)
    if len(pieces) == 1:
        pieces = text.split("\n")
    return [asked(piece.strip()) for piece in pieces if piece.strip()]


def _from_json(text: str, path: Path) -> list[Messages]:
    prompts = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                prompts.append(_messages(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise UsageError(f"--data: line {number} of {path} is not a prompt: {error}") from None
    return [messages for messages in prompts if messages]


def _messages(line: Any) -> Messages:
    """Up to the last one that isn't the assistant's: what it said there is for the model to say. Raises ValueError."""
    if isinstance(line, dict) and isinstance(line.get("prompt"), str):
        return asked(line["prompt"]) if line["prompt"].strip() else []
    messages = line.get("messages") if isinstance(line, dict) else None
    if not isinstance(messages, list) or not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
        raise ValueError(f"expected {SHAPES}")
    messages = list(messages)
    while messages and messages[-1]["role"] == "assistant":
        messages.pop()
    return messages
