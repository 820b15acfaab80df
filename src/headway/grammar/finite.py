"""Which schemas have a value that ends. One whose every value holds another of the same kind has none, and a grammar of it
would force an endless text."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from urllib.parse import unquote

Nodes = dict[str, dict[str, Any]]
"""Schemas by JSON pointer (as a fragment: the root is "#"), those that hold others before them."""


def first_endless(nodes: Nodes, root: Any) -> str | None:
    """The pointer of the first schema that no finite value fits because of what it refers to; None if there is none."""
    names = {id(schema): at for at, schema in nodes.items()}
    ends: set[str] = set()
    waiting: defaultdict[str, set[str]] = defaultdict(set)
    todo = list(nodes)  # taken from the end: the innermost first, so that most are settled at once
    while todo:
        at = todo.pop()
        if at in ends:
            continue
        missing = _missing(nodes[at], root, names, ends)
        if missing is None:
            ends.add(at)
            todo.extend(waiting.pop(at, ()))
        for each in missing or ():
            waiting[each].add(at)
    return next((at for at in nodes if at not in ends), None)


def resolve(root: Any, pointer: str) -> Any:
    """What a pointer (`#` or `#/...`) points to within the document; None if to nothing, and for the name of an anchor."""
    if pointer != "#" and not pointer.startswith("#/"):
        return None
    found = root
    for part in pointer.split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def _missing(schema: dict[str, Any], root: Any, names: dict[int, str], ends: set[str]) -> set[str] | None:
    """None if the schema has a value that ends, as far as is known; else the pointers of the schemas that this waits for."""
    missing: set[str] = set()

    def open_in(*each: Any) -> set[str]:
        return {names[id(one)] for one in each if id(one) in names} - ends

    reference = schema.get("$ref")
    if isinstance(reference, str):
        missing |= open_in(resolve(root, reference))
    missing |= open_in(*_list(schema.get("allOf")))
    for key in ("anyOf", "oneOf"):
        branches = _list(schema.get(key))
        still_open = open_in(*branches)
        if branches and len(still_open) == len(branches):
            missing |= still_open
    if "const" in schema or "enum" in schema:
        return missing or None
    kinds = schema.get("type")
    kinds = set(kinds) if isinstance(kinds, list) else {kinds}
    if kinds <= {"object", "array"}:
        needs = []
        if "object" in kinds:
            properties = schema.get("properties")
            required = schema.get("required")
            if isinstance(properties, dict) and isinstance(required, list):
                needs.append(open_in(*(properties.get(name) for name in required if isinstance(name, str))))
            else:
                needs.append(set())
        if "array" in kinds:
            needs.append(open_in(*_first_items(schema)))
        if all(needs):
            missing |= set().union(*needs)
    return missing or None


def _first_items(schema: dict[str, Any]) -> list[Any]:
    """The schemas of the items that an array must have."""
    least = schema.get("minItems")
    if not isinstance(least, int) or least < 1:
        return []
    first = _list(schema.get("prefixItems", schema.get("items")))
    rest = schema.get("items") if "prefixItems" in schema or not first else schema.get("additionalItems")
    return [*first[:least], *([rest] if least > len(first) else [])]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
