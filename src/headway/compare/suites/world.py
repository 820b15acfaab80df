"""A small world for work in several steps: files, a calendar, a shop. Its tools, and what they answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.compare.suites.calls import tool

STRING, INTEGER = {"type": "string"}, {"type": "integer"}

TOOLS = (
    tool("read_file", "What a file says.", {"name": STRING}),
    tool("list_files", "The names of all files.", {}),
    tool("write_file", "Makes a file, or replaces what it says.", {"name": STRING, "text": STRING}),
    tool("rename_file", "Gives a file another name.", {"old": STRING, "new": STRING}),
    tool(
        "add_event",
        "Puts an event into the calendar.",
        {"title": STRING, "date": {"type": "string", "description": "YYYY-MM-DD"}},
    ),
    tool("list_events", "All events in the calendar.", {}),
    tool("get_price", "The price of one piece, in euros.", {"item": STRING}),
    tool("buy", "Buys so many pieces.", {"item": STRING, "count": INTEGER}),
)
LOOKS = frozenset({"read_file", "list_files", "list_events", "get_price"})
"""Tools that change nothing: one more of these than needed is no mistake."""


@dataclass(slots=True)
class World:
    files: dict[str, str] = field(default_factory=dict)
    events: list[dict[str, str]] = field(default_factory=list)
    prices: dict[str, int] = field(default_factory=dict)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Do what a valid call says; what the tool answers, as JSON."""
        return json.dumps(self._do(name, **arguments))

    def _do(self, tool_name: str, /, **given: Any) -> Any:
        match tool_name:
            case "read_file":
                return {"text": self.files[given["name"]]} if given["name"] in self.files else {"error": "no such file"}
            case "list_files":
                return sorted(self.files)
            case "write_file":
                self.files[given["name"]] = given["text"]
            case "rename_file":
                if given["old"] not in self.files:
                    return {"error": "no such file"}
                self.files[given["new"]] = self.files.pop(given["old"])
            case "add_event":
                self.events.append(dict(given))
            case "list_events":
                return self.events
            case "get_price":
                item = given["item"].strip().casefold()
                return {"price": self.prices[item]} if item in self.prices else {"error": "not sold here"}
            case "buy":
                item = given["item"].strip().casefold()
                return {"paid": self.prices[item] * given["count"]} if item in self.prices else {"error": "not sold here"}
            case _:
                raise KeyError(tool_name)
        return {"ok": True}
