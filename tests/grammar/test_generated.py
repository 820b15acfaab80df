"""Generated schemas: whatever the dice choose under the mask is valid, by another implementation's word, or was cut."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grammar.schemas import schemas
from grammar.tiny import CLOSING, TOKEN_BYTES, closing_of, shared, text_of, walk
from headway.grammar.compiler import Compiler
from headway.grammar.constraint import json_schema
from headway.grammar.errors import ConstraintError
from headway.grammar.matcher import Matcher
from headway.text.tokenizer import Tokenizer

CUT = 300


def check(
    schema: Any,
    seed: int,
    compiler: Compiler | None = None,
    token_bytes: list[bytes] = TOKEN_BYTES,
    closing: NDArray[np.bool_] = CLOSING,
) -> str:
    """How it ended: refused, cut or valid."""
    try:
        grammar = (compiler or shared()).compile(json_schema(schema))
    except ConstraintError as error:
        assert "Unsatisfiable" in str(error) or "oneOf" in str(error), (error, schema)
        return "refused"

    def forced_comes(matcher: Matcher) -> None:
        forced = matcher.forced(4)
        matcher.prepare(forced)
        assert not forced or matcher.allowed().only == forced[0]

    matcher = grammar.start()
    tokens = walk(matcher, random.Random(seed), CUT, closing, forced_comes)
    assert matcher.failure is None, (matcher.failure, schema, text_of(tokens, token_bytes))
    if not matcher.finished:
        return "cut"
    value = json.loads(text_of(tokens, token_bytes))
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
    return "valid"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas(), st.integers(0, 2**32))
def test_what_is_generated_is_valid(schema: Any, seed: int) -> None:
    check(schema, seed)


def test_most_generated_schemas_are_served_to_their_end() -> None:
    """Else the test above would prove little."""
    ends: list[str] = []

    @settings(max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(schemas(), st.integers(0, 2**32))
    def count(schema: Any, seed: int) -> None:
        ends.append(check(schema, seed))

    count()
    assert ends.count("valid") > 0.7 * len(ends), ends


@pytest.mark.model
def test_with_the_tokens_of_a_real_model(smollm2: Path) -> None:
    tokenizer = Tokenizer.load(smollm2)
    compiler = Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode)
    closing = closing_of(tokenizer.token_bytes)

    @settings(max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(schemas(), st.integers(0, 2**32))
    def each(schema: Any, seed: int) -> None:
        check(schema, seed, compiler, tokenizer.token_bytes, closing)

    each()
