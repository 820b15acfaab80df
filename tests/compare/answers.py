"""Answers that were never asked for."""

from __future__ import annotations

import json
from typing import Any

from headway.compare.target import Answer, Call

from .records import success


def said(text: str) -> Answer:
    return Answer(success(0.0, 0.1, 0.1, 4), text)


def called(*calls: tuple[str, Any], text: str = "") -> Answer:
    """Calls with arguments as data, or as the text that a model wrote."""
    made = [
        Call(f"c{place}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for place, (name, arguments) in enumerate(calls)
    ]
    return Answer(success(0.0, 0.1, 0.1, 4), text, made)
