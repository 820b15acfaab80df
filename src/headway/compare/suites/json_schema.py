"""JSON by a schema: valid by it, and with the values that the text says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from jsonschema import Draft202012Validator

from headway.compare.suites.task import Made, Suite, fresh, text_question
from headway.compare.suites.texts import code_of, shown
from headway.compare.suites.words import COLOURS, PEOPLE, PLACES, THINGS, code, date

STRING, INTEGER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def make(rng: Random, level: int) -> Made:
    """Level 1: a string. 2: three types. 3: an object in an object, an enum, null. 4: a list of objects. 5: sums over it."""
    return (_one_field, _three_types, _nested, _list, _sums)[level - 1](rng)


def fault(text: str, schema: Mapping[str, Any], wanted: Any) -> str | None:
    """The answer (a code fence around it is allowed) must be JSON, valid by the schema, and equal to what is wanted; text is
    compared without case."""
    try:
        value = json.loads(code_of(text), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return f"no JSON: {shown(text)}"
    error = next(iter(Draft202012Validator(schema).iter_errors(value)), None)
    if error is not None:
        return f"not by the schema: {shown(error.message)}"
    return None if _same(value, wanted) else f"wanted {shown(json.dumps(wanted))}, got {shown(text)}"


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(value, dict) and value.keys() == wanted.keys() and all(_same(value[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_same, value, wanted))
    if isinstance(wanted, str):
        return isinstance(value, str) and value.strip().casefold() == wanted.casefold()
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    return bool(value == wanted)


def closed(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has these fields, all of them, and no others (the form that strict modes of APIs want)."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _ask(text: str, schema: dict[str, Any], wanted: Any, max_tokens: int) -> Made:
    prompt = f"{text}\n\nWrite this as JSON by the following schema, and nothing else.\n{json.dumps(schema)}"
    return text_question(prompt, lambda answer: fault(answer, schema, wanted), max_tokens, schema=schema)


def _one_field(rng: Random) -> Made:
    name = rng.choice(PEOPLE)
    return _ask(f"Her name is {name}.", closed(name=STRING), {"name": name}, 24)


def _three_types(rng: Random) -> Made:
    name, age, married = rng.choice(PEOPLE), rng.randint(18, 80), rng.random() < 0.5
    text = f"{name} is {age} years old and {'married' if married else 'not married'}."
    return _ask(text, closed(name=STRING, age=INTEGER, married=BOOLEAN), {"name": name, "age": age, "married": married}, 40)


def _nested(rng: Random) -> Made:
    name, city, colour = rng.choice(PEOPLE), rng.choice(PLACES), rng.choice(COLOURS)
    number = rng.choice((None, code(rng)))
    text = f"{name} from {city} wants a {colour} card" + (
        f", to replace card {number}." if number else "; it is the first one."
    )
    schema = closed(
        person=closed(name=STRING, city=STRING),
        colour={"type": "string", "enum": list(COLOURS)},
        replaces={"type": ["string", "null"]},
    )
    return _ask(text, schema, {"person": {"name": name, "city": city}, "colour": colour, "replaces": number}, 64)


def _rows(rng: Random, count: int) -> list[dict[str, Any]]:
    return [{"thing": thing, "count": rng.randint(2, 9), "price": rng.randint(3, 40)} for thing in rng.sample(THINGS, count)]


def _list(rng: Random) -> Made:
    rows, day = _rows(rng, 3), date(rng)
    parts = [f"{row['count']} {row['thing']}s at {row['price']} euros each" for row in rows]
    schema = closed(
        date=STRING, items={"type": "array", "minItems": 1, "items": closed(thing=STRING, count=INTEGER, price=INTEGER)}
    )
    text = f"On {day} the shop sold {', '.join(parts[:-1])} and {parts[-1]}. (Name each thing in the singular.)"
    return _ask(text, schema, {"date": day, "items": rows}, 120)


def _sums(rng: Random) -> Made:
    rows = _rows(rng, 5)
    dear = [row["thing"] for row in rows if row["count"] * row["price"] > 100]
    total = sum(row["count"] * row["price"] for row in rows)
    parts = [f"{row['count']} of the {row['thing']}, {row['price']} euros apiece" for row in rows]
    text = (
        f"Sold: {'; '.join(parts)}. `lines` is the amount of each line in the order of the text, `total` their sum, `dear` the "
        "things whose line is over 100 euros, in the order of the text."
    )
    schema = closed(lines={"type": "array", "items": INTEGER}, total=INTEGER, dear={"type": "array", "items": STRING})
    wanted = {"lines": [row["count"] * row["price"] for row in rows], "total": total, "dear": dear}
    return _ask(text, schema, wanted, 120)


SUITE = Suite("json", "Writes JSON by a schema, with the right values.", fresh("json", 5, lambda r, n: make(r, n).play))
