"""JSON schemas, looked through before the grammar library gets them.

The library refuses what it doesn't implement, but does not say where, and it takes some schemas that it can't serve: what
would let invalid JSON through, or start a value that can't be finished, is refused here, with the place. The rest of what can
be wrong with a schema, it says itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from llguidance import LLMatcher

from headway.grammar.errors import ConstraintError
from headway.grammar.finite import Nodes, first_endless, resolve

MAX_CHARS = 100_000
MAX_DEPTH = 64
"""Of schemas within schemas. Real ones have ten levels."""
MAX_PROPERTIES = 256
"""Of one object: where any of them may come next, a mask takes some 10 us for each."""

_UNSUPPORTED = frozenset(
    {"not", "if", "then", "else", "contains", "minContains", "maxContains", "propertyNames"}
    | {"dependencies", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"}
    | {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}
)
_SCHEMA = frozenset({"items", "additionalItems", "additionalProperties"})
_LIST_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_MAP_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions"})

_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"})
_UNENFORCED = frozenset(
    {"idn-email", "idn-hostname", "uri-reference", "uri-template", "iri", "iri-reference"}
    | {"json-pointer", "relative-json-pointer", "regex"}
)
_DIALECT = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/(2019-09|2020-12))/schema#?")


def prepared(schema: Any) -> dict[str, Any]:
    """A copy for the grammar library, without what means nothing. Raises ConstraintError."""
    _check_size(schema)
    if schema is True:
        return {}
    if schema is False:
        raise ConstraintError("the schema is false: no value fits it")
    walk = _Walk()
    copy = walk.schema(schema, "#", 0)
    assert isinstance(copy, dict)
    walk.follow_refs(schema)
    endless = first_endless(walk.nodes, schema)
    if endless is not None:
        raise ConstraintError(f"the schema at {endless} can't be finished: each value that fits it holds another one")
    return copy


def _check_size(schema: Any) -> None:
    try:
        size = len(json.dumps(schema, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise ConstraintError(f"the schema can't be written as JSON: {error}") from None
    if size > MAX_CHARS:
        raise ConstraintError(f"the schema has {size} bytes; the most is {MAX_CHARS}")


class _Walk:
    """nodes: each schema within the schema, by its pointer."""

    def __init__(self) -> None:
        self.nodes: Nodes = {}
        self._refs: list[tuple[str, str]] = []

    def schema(self, schema: Any, at: str, depth: int) -> dict[str, Any] | bool:
        if depth > MAX_DEPTH:
            raise ConstraintError(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise ConstraintError(f"what stands at {at} is not a schema: it must be an object, true or false")
        self.nodes[at] = schema
        copy = {key: self._value(key, value, at, depth) for key, value in schema.items() if _means(key, value, at)}
        _check_properties(schema, at)
        return copy

    def follow_refs(self, root: Any) -> None:
        """Look through what is only there to be pointed at."""
        for at, target in self._refs:  # grows meanwhile
            if target.startswith("#/") and target not in self.nodes:
                found = resolve(root, target)
                if found is None:
                    raise ConstraintError(f"the $ref {target!r} at {at} points to nothing; pointers start at the root")
                self.schema(found, target, 1)

    def _value(self, key: str, value: Any, at: str, depth: int) -> Any:
        place = f"{at}/{_escaped(key)}"
        if key == "$ref" and isinstance(value, str):
            if not value.startswith("#"):
                raise ConstraintError(f"the $ref {value!r} at {at} is not within the schema: only those that begin with # work")
            self._refs.append((at, value))
        if key in _MAP_OF_SCHEMAS and isinstance(value, dict):
            return {name: self.schema(each, f"{place}/{_escaped(name)}", depth + 1) for name, each in value.items()}
        if key in _LIST_OF_SCHEMAS and isinstance(value, list):
            return [self.schema(each, f"{place}/{i}", depth + 1) for i, each in enumerate(value)]
        if key in _SCHEMA:
            return self.schema(value, place, depth + 1)
        return value


def _means(key: str, value: Any, at: str) -> bool:
    """Whether a keyword belongs into the copy. Raises for those that the grammar can't keep."""
    if key in _UNSUPPORTED:
        raise ConstraintError(f"the keyword '{key}' at {at} is not supported")
    if key == "uniqueItems" and value is not False:
        raise ConstraintError(f"the keyword '{key}' at {at} is not supported")
    if key == "format" and isinstance(value, str) and value in _UNENFORCED:
        raise ConstraintError(f"the format {value!r} at {at} is not supported")
    if key == "$schema" and not (isinstance(value, str) and _DIALECT.fullmatch(value)):
        raise ConstraintError(f"the dialect at {at}/$schema is not known: use https://json-schema.org/draft/2020-12/schema")
    if key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
        raise ConstraintError(f"'{key}' at {at} must be a number, as in the drafts since 6")
    if key == "format":  # others are names that the specification leaves to whoever uses them, such as int64
        return not isinstance(value, str) or value in _FORMATS
    return key not in ("uniqueItems", "x-guidance")  # the latter would change how the library reads the schema


def _check_properties(schema: dict[str, Any], at: str) -> None:
    properties = schema.get("properties")
    if isinstance(properties, dict) and len(properties) > MAX_PROPERTIES:
        raise ConstraintError(f"the object at {at} has {len(properties)} properties; the most is {MAX_PROPERTIES}")
    declared = [*_names(properties), *_names(schema.get("required"))]
    least = schema.get("minProperties")
    if isinstance(least, int) and least > max(1, len(set(_names(schema.get("required"))))):
        # The grammar can't see that a free key has come before, and one that comes twice is one property.
        raise ConstraintError(f"'minProperties' at {at} is only supported up to the number of required properties")
    patterns = schema.get("patternProperties")
    if declared and isinstance(patterns, dict) and patterns and _overlap(declared, list(patterns)):
        message = f"'patternProperties' at {at} is only supported if no property with a schema of its own fits a pattern"
        raise ConstraintError(message)


def _names(value: Any) -> Iterator[str]:
    """Keys of an object or strings of a list; nothing of anything else, which the library refuses."""
    return (name for name in value if isinstance(name, str)) if isinstance(value, dict | list) else iter(())


def _overlap(names: list[str], patterns: list[str]) -> bool:
    """Whether a name fits a pattern, as the library sees it: it refuses patterns that have a text in common. (Python's own
    regular expressions can take for ever.)"""
    exact = "^(" + "|".join(re.escape(name) for name in names) + ")$"
    probe = {"type": "object", "patternProperties": dict.fromkeys([*patterns, exact], True)}
    return bool(LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(probe))))


def _escaped(name: str) -> str:
    """For a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
