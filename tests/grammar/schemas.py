"""Schemas of the kinds that people send, made up at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

NAMES = st.sampled_from(["name", "age", "a b", "größe 🫠", 'q"\\', "x", "items", "type", "$ref", ""])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000),
    st.sampled_from([0.5, -1.25, 1e6]),
    st.text(max_size=6),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["k", "é"]), st.integers(0, 3), max_size=2),
)


@st.composite
def _ranges(draw: st.DrawFn, low: str, high: str, smallest: int, largest: int) -> Schema:
    least = draw(st.integers(smallest, largest))
    most = draw(st.integers(least, largest + 2))
    return draw(st.sampled_from([{}, {low: least}, {high: most}, {low: least, high: most}]))


@st.composite
def _strings(draw: st.DrawFn) -> Schema:
    more = draw(
        st.one_of(
            _ranges("minLength", "maxLength", 0, 6),
            st.sampled_from([{"pattern": p} for p in ("^[a-z]{1,4}$", "ab?c", r"^\d{2}-\d{2}$", "^(x|yy)+$", "^.$")]),
            st.sampled_from([{"format": f} for f in ("date", "time", "date-time", "uuid", "ipv4", "email", "password")]),
        )
    )
    return {"type": "string", **more}


@st.composite
def _numbers(draw: st.DrawFn) -> Schema:
    kind = draw(st.sampled_from(["integer", "number"]))
    more = draw(
        st.one_of(
            _ranges("minimum", "maximum", -20, 120),
            _ranges("exclusiveMinimum", "exclusiveMaximum", -20, 120).filter(
                lambda r: r.get("exclusiveMaximum", 999) - r.get("exclusiveMinimum", -999) > 1
            ),
            st.sampled_from([{"multipleOf": 5}, {"multipleOf": 2, "minimum": 0, "maximum": 50}]),
        )
    )
    return {"type": kind, **more}


SIMPLE: st.SearchStrategy[Schema] = st.one_of(
    _strings(),
    _numbers(),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["integer", "null"]}, {}]),
    st.lists(VALUES, min_size=1, max_size=4).map(lambda values: {"enum": values}),
    VALUES.map(lambda value: {"const": value}),
)


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    required = [name for name in properties if draw(st.booleans())]
    rest = draw(st.sampled_from([{"additionalProperties": False}, {"additionalProperties": False}, {}, None]))
    more = {"additionalProperties": draw(inner)} if rest is None else rest
    return {"type": "object", "properties": properties, "required": required, **more}


@st.composite
def _arrays(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    if draw(st.booleans()):
        first = draw(st.lists(inner, min_size=1, max_size=3))
        return {"type": "array", "prefixItems": first, "items": False, "minItems": draw(st.integers(0, len(first)))}
    return {"type": "array", "items": draw(inner), **draw(_ranges("minItems", "maxItems", 0, 3))}


def _nested(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(_objects(inner), _arrays(inner), several.map(lambda each: {"anyOf": each}))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Some of them with a definition that is pointed at, some of these recursive."""
    node = {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}
    definitions = {"node": draw(st.sampled_from([node, {"anyOf": [{"type": "integer"}, node]}])), "leaf": draw(SIMPLE)}
    references = st.sampled_from([{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/leaf"}])
    return {**draw(st.recursive(SIMPLE | references, _nested, max_leaves=8)), "$defs": definitions}
