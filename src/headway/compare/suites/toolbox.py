"""Tools that suites offer, each with a way to make up a request for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from headway.compare.suites.calls import Tool, Wanted, tool
from headway.compare.suites.words import PEOPLE, PLACES, THINGS, clock, date

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))


@dataclass(frozen=True, slots=True)
class Kit:
    """make: a request in words, and the arguments that it comes to."""

    tool: Tool
    make: Callable[[Random], tuple[str, dict[str, Any]]]

    @property
    def name(self) -> str:
        return str(self.tool["function"]["name"])

    def request(self, rng: Random) -> tuple[str, Wanted]:
        words, arguments = self.make(rng)
        return words, Wanted(self.name, arguments)


def _weather(rng: Random) -> tuple[str, dict[str, Any]]:
    city = rng.choice(PLACES)
    return f"What is the weather in {city}?", {"city": city}


def _lamp(rng: Random) -> tuple[str, dict[str, Any]]:
    on = rng.random() < 0.5
    room = rng.choice(("kitchen", "hall", "bedroom", "office"))
    return f"Turn the lamp in the {room} {'on' if on else 'off'}.", {"room": room, "on": on}


def _alarm(rng: Random) -> tuple[str, dict[str, Any]]:
    time = clock(rng)
    return f"Set an alarm for {time}.", {"time": time}


def _convert(rng: Random) -> tuple[str, dict[str, Any]]:
    amount, (of, to) = rng.randint(5, 900), rng.sample(("EUR", "USD", "GBP", "JPY"), 2)
    return f"Convert {amount} {of} to {to}.", {"amount": amount, "from": of, "to": to}


def _book(rng: Random) -> tuple[str, dict[str, Any]]:
    name, day, time, people = rng.choice(PEOPLE), date(rng), clock(rng), rng.randint(2, 8)
    return (
        f"Book a table for {people} people on {day} at {time} in the name of {name}.",
        {"name": name, "date": day, "time": time, "people": people},
    )


def _message(rng: Random) -> tuple[str, dict[str, Any]]:
    name, text = rng.choice(PEOPLE), rng.choice(("I am late", "The door is open", "Call me back", "See you there"))
    return f"Send {name} the message: {text}", {"to": name, "text": text}


def _order(rng: Random) -> tuple[str, dict[str, Any]]:
    city, things = rng.choice(PLACES), rng.sample(THINGS, 3)
    lines = [{"thing": thing, "count": rng.randint(2, 9)} for thing in things]
    said = [f"{line['count']} {line['thing']}s" for line in lines]
    return (
        f"Order {said[0]}, {said[1]} and {said[2]}, to be sent to {city} as a gift. (Name each thing in the singular.)",
        {"city": city, "lines": lines, "gift": True},
    )


_CURRENCY = {"type": "string", "enum": ["EUR", "USD", "GBP", "JPY"]}
_LINE = {"type": "object", "properties": {"thing": STRING, "count": INTEGER}, "required": ["thing", "count"]}

WEATHER = Kit(tool("get_weather", "The weather in a city now.", {"city": STRING}), _weather)
LAMP = Kit(tool("switch_lamp", "Turns a lamp on or off.", {"room": STRING, "on": BOOLEAN}), _lamp)
ALARM = Kit(tool("set_alarm", "Sets an alarm.", {"time": {"type": "string", "description": "HH:MM"}}), _alarm)
CONVERT = Kit(tool("convert", "Converts money.", {"amount": NUMBER, "from": _CURRENCY, "to": _CURRENCY}), _convert)
BOOK = Kit(
    tool(
        "book_table",
        "Books a table in the restaurant.",
        {"name": STRING, "date": {"type": "string", "description": "YYYY-MM-DD"}, "time": STRING, "people": INTEGER},
    ),
    _book,
)
MESSAGE = Kit(tool("send_message", "Sends a text message to a person.", {"to": STRING, "text": STRING}), _message)
ORDER = Kit(
    tool(
        "place_order",
        "Orders things from the shop.",
        {"city": STRING, "lines": {"type": "array", "items": _LINE}, "gift": BOOLEAN, "note": STRING},
        required=("city", "lines"),
    ),
    _order,
)

KITS = (WEATHER, LAMP, ALARM, CONVERT, BOOK, MESSAGE, ORDER)
