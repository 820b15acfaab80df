"""Events as server-sent events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_core import to_json

DONE = b"data: [DONE]\n\n"


def frame(events: Iterable[dict[str, Any]]) -> bytes:
    """An event with a "type" has that as its name too. In ASCII: no client's line splitter can take a character such as U+2028
    for the end of an event."""
    framed = []
    for event in events:
        name = event.get("type")
        if name is not None:
            framed.append(b"event: %s\n" % name.encode())
        framed.append(b"data: %s\n\n" % to_json(event, ensure_ascii=True))
    return b"".join(framed)
