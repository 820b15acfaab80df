"""What the scripts beside this file share. `python CLIENT.py URL MODEL STEP...` runs these steps, one after the other, and
prints one JSON object: what each gave, or why it failed."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

url, model, *chosen = sys.argv[1:] or ["", ""]
TOOL: dict[str, Any] = {
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
        "required": ["city"],
    },
}


def run(steps: Mapping[str, Callable[[], Any]]) -> None:
    told = {}
    for name in chosen:
        try:
            told[name] = {"gave": steps[name]()}
        except Exception:
            told[name] = {"failed": traceback.format_exc()}
    print(json.dumps(told, default=_plain))


def thrown(call: Callable[[], Any]) -> dict[str, Any]:
    """What a call that must fail threw, by the class that the client made of it, and the classes that this one is of."""
    try:
        call()
    except Exception as error:
        classes = [each.__name__ for each in type(error).__mro__]
        return {"classes": classes, "status": getattr(error, "status_code", None), "message": str(error)}
    raise AssertionError("it did not fail")


def each(ways: Mapping[str, dict[str, Any]], call: Callable[..., Any]) -> dict[str, Any]:
    """`call` once for each way to ask for speed, by the name of the way."""
    return {name: call(**fields) for name, fields in ways.items()}


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json")
