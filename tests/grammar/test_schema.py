"""Schemas that can be kept, and those that are refused with their place."""

from __future__ import annotations

from typing import Any

import pytest

from grammar.tiny import choices, compiler, encode, shared, start
from headway.grammar.compiler import KEPT
from headway.grammar.constraint import json_object, json_schema
from headway.grammar.errors import ConstraintError
from headway.grammar.schema import MAX_CHARS, MAX_DEPTH, MAX_PROPERTIES, prepared

INTEGER = {"type": "integer"}


def refusal(schema: Any) -> str:
    with pytest.raises(ConstraintError) as caught:
        shared().compile(json_schema(schema))
    message = str(caught.value)
    assert message and "\n" not in message and "start:" not in message
    return message


@pytest.mark.parametrize(
    "keyword",
    [
        *({key: INTEGER} for key in ("not", "if", "then", "else", "contains", "propertyNames")),
        {"uniqueItems": True},
        {"minContains": 1},
        {"unevaluatedProperties": False},
        {"dependentRequired": {"a": ["b"]}},
        {"dependentSchemas": {"a": INTEGER}},
        {"dependencies": {"a": ["b"]}},
        {"$dynamicRef": "#x"},
    ],
)
def test_unsupported_keywords_are_named_with_their_place(keyword: dict[str, Any]) -> None:
    name = next(iter(keyword))
    assert f"'{name}' at # " in refusal(keyword)
    assert f"'{name}' at #/properties/a~1b/items " in refusal({"properties": {"a/b": {"items": keyword}}})
    assert f"'{name}' at #/anyOf/1 " in refusal({"anyOf": [INTEGER, keyword]})
    assert f"'{name}' at #/$defs/D " in refusal({"$ref": "#/$defs/D", "$defs": {"D": keyword}})
    assert f"'{name}' at #/elsewhere " in refusal({"$ref": "#/elsewhere", "elsewhere": keyword})


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"properties": {"a": 5}}, "#/properties/a is not a schema"),
        ({"properties": 5}, "properties must be an object"),
        ({"type": "strin"}, "strin"),
        ({"required": "x"}, "required"),
        ({"type": "string", "pattern": "("}, "unclosed group"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        ({"type": "string", "format": "regex"}, "'regex' at #"),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, "exclusiveMinimum"),
        ({"type": "integer", "minimum": 4, "maximum": 3}, "minimum"),
        ({"type": "integer", "enum": ["a"]}, "incompatible"),
        ({"oneOf": [INTEGER, {"type": "number"}]}, "use anyOf"),
        ({"$ref": "http://x/y"}, "http://x/y"),
        ({"$ref": "#/$defs/no"}, "#/$defs/no"),
        ({"$schema": "http://weird", "type": "string"}, "$schema"),
        ({"const": "\ud83d"}, "surrogates"),
        ({"const": float("nan")}, "JSON"),
        (False, "false"),
        ([], "not a schema"),
        (None, "not a schema"),
        ({"type": "object", "additionalProperties": INTEGER, "minProperties": 2}, "minProperties"),
        ({"properties": {"ab": {}}, "patternProperties": {"^a": {}}}, "patternProperties"),
        ({"required": ["ab"], "patternProperties": {"^a": {}}}, "patternProperties"),
    ],
)
def test_what_else_cannot_be_kept(schema: Any, told: str) -> None:
    assert told in refusal(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "array", "prefixItems": [True, {"$ref": "#"}], "minItems": 2},
        {"anyOf": [{"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 2}]},
        {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/e"}], "$defs": {"e": {"allOf": [{"$ref": "#/$defs/e"}]}}},
    ],
)
def test_values_without_end_are_refused(schema: Any) -> None:
    assert "can't be finished" in refusal(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": ["array", "null"], "items": {"$ref": "#"}, "minItems": 1},
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 2}]},
        {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "prefixItems": [True, {"$ref": "#"}], "minItems": 1},
        {"$ref": "#name", "$defs": {"x": {"$anchor": "name", "type": "string"}}},
        {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": INTEGER}},
        {"properties": {"a": {}}, "patternProperties": {"^x-": INTEGER}, "additionalProperties": False},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [INTEGER], "additionalItems": False},
    ],
)
def test_recursion_that_can_end_and_patterns_apart_are_fine(schema: Any) -> None:
    assert start(json_schema(schema)).failure is None


def test_what_means_nothing_is_left_out() -> None:
    schema = {
        "type": "array",
        "uniqueItems": False,
        "x-guidance": {"lenient": True},
        "title": "t",
        "items": {"type": "integer", "format": "int64"},
        "x-own": 1,
    }
    assert prepared(schema) == {"type": "array", "title": "t", "items": {"type": "integer"}, "x-own": 1}
    assert prepared(True) == prepared({}) == {}
    assert "uniqueItems" in schema


def test_values_are_no_schemas() -> None:
    for key in ("const", "default"):
        prepared({key: {"not": 1, "$ref": "nowhere"}})
    prepared({"enum": [{"not": 1}], "properties": {"not": INTEGER, "if": INTEGER}})


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = INTEGER
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def test_size_and_depth_are_bounded() -> None:
    prepared(deep(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 5000):
        with pytest.raises(ConstraintError):
            prepared(deep(levels))
    prepared({"const": "x" * (MAX_CHARS - 20)})
    assert str(MAX_CHARS) in refusal({"const": "x" * MAX_CHARS})


def test_an_object_of_the_most_properties_can_be_written() -> None:
    properties = {f"p{i}": {"type": "integer"} for i in range(MAX_PROPERTIES)}
    matcher = start(json_schema({"type": "object", "properties": properties, "additionalProperties": False}))
    for token in encode('{"p7": 1, "p100": 2, "p255": 3}'):
        assert token in choices(matcher)
        matcher.accept(token)
    assert matcher.finished and matcher.failure is None
    assert "257 properties" in refusal({"properties": {**properties, "one more": {}}})


def branches(n: int) -> dict[str, Any]:
    """2 ** n ways to be an object."""
    kinds = [
        [{"properties": {f"k{i}": {"type": kind}}, "required": [f"k{i}"]} for kind in ("integer", "string")] for i in range(n)
    ]
    return {"type": "object", "allOf": [{"anyOf": pair} for pair in kinds]}


@pytest.mark.parametrize(
    "schema",
    [
        branches(14),
        branches(22),
        {"allOf": [{"type": "integer", "multipleOf": n} for n in (997, 991, 983)]},
    ],
)
def test_explosions_are_cut_short(schema: Any) -> None:
    assert refusal(schema)  # written out, they would never fit into memory


def test_equal_constraints_are_compiled_once_and_not_all_are_kept() -> None:
    fresh = compiler()
    first = fresh.compile(json_object())
    assert fresh.compile(json_schema({"type": "object"})) is first and fresh.kept(json_object()) is first
    for n in range(KEPT):
        fresh.compile(json_schema({"const": n}))
    assert fresh.kept(json_object()) is None
