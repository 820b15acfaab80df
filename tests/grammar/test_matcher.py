"""What may come next, ahead of drafts and after them."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from grammar.tiny import EOS, OTHER_EOS, TOKEN_BYTES, choices, encode, start, text_of, walk
from headway.grammar.constraint import json_object, json_schema

PERSON = json_schema(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 5}, "ok": {"type": "boolean"}},
        "required": ["name", "ok"],
        "additionalProperties": False,
    }
)


def test_only_what_fits_may_come() -> None:
    matcher = start(PERSON)
    assert {TOKEN_BYTES[token] for token in choices(matcher)} <= {b"{", b'{"'}
    for token in encode('{"name": "'):
        assert token in choices(matcher)
        matcher.accept(token)
    assert encode("a")[0] in choices(matcher) and 10 not in choices(matcher)  # no newline in a string
    assert not {EOS, OTHER_EOS} & set(choices(matcher))


def test_a_complete_output_is_finished_and_an_open_one_may_end() -> None:
    matcher = start(PERSON)
    for token in encode('{"name": "ab", "ok": true}'):
        assert not matcher.finished
        matcher.accept(token)
    assert matcher.finished and matcher.failure is None and matcher.forced(9) == [] and matcher.fitting([65]) == 0
    number = start(json_schema({"type": "integer"}))
    number.accept(encode("12")[0])
    assert not number.finished and {EOS, OTHER_EOS} <= set(choices(number))
    number.accept(EOS)
    assert number.finished and number.failure is None


def test_forced_tokens_are_the_only_ones() -> None:
    matcher = start(PERSON)
    forced = matcher.forced(100)
    assert text_of(forced) == '{"name' and matcher.forced(2) == forced[:2]
    for token in forced:
        assert matcher.allowed().only == token and choices(matcher) == [token]
        matcher.accept(token)
    assert matcher.allowed().only is None


def test_masks_ahead_are_those_that_come_one_by_one() -> None:
    """Whatever was drafted, and however much of it came."""
    for seed in range(20):
        rng = random.Random(seed)
        tokens = walk(start(PERSON), rng, 40)
        plain = start(PERSON)
        masks = []
        for token in tokens:
            masks.append(plain.allowed())
            plain.accept(token)
        matcher, at = start(PERSON), 0
        while at < len(tokens):
            drafts = tokens[at : at + rng.randrange(6)]
            if drafts and rng.random() < 0.5:
                drafts[rng.randrange(len(drafts))] = rng.randrange(len(TOKEN_BYTES))
            matcher.prepare(drafts)
            for step in range(at, min(len(tokens), at + 1 + rng.randrange(6))):
                allowed = matcher.allowed()
                assert np.array_equal(allowed.forbidden, masks[step].forbidden) and allowed.only == masks[step].only
                matcher.accept(tokens[step])
                at = step + 1
        assert matcher.finished == plain.finished


def test_drafts_are_taken_as_far_as_they_fit() -> None:
    matcher = start(PERSON)
    good, bad = encode('{"name": "ab", '), encode("x")
    assert matcher.fitting(good) == len(good) and matcher.fitting([*good, *bad]) == len(good) and matcher.fitting([]) == 0
    matcher.prepare([*good, *bad, *good])
    for token in good:
        matcher.accept(token)
    assert bad[0] not in choices(matcher)


def test_requests_do_not_share_a_place() -> None:
    first, second = start(json_object()), start(json_object())
    first.accept(encode("{")[0])
    assert choices(first) != choices(second)
    assert {TOKEN_BYTES[token][:1] for token in choices(second)} == {b"{"}


def test_what_is_not_allowed_fails_and_says_so() -> None:
    matcher = start(PERSON)
    matcher.accept(encode("x")[0])
    assert matcher.finished and matcher.failure and "\n" not in matcher.failure


@pytest.mark.parametrize("seed", range(10))
def test_json_stands_on_one_line(seed: int) -> None:
    matcher = start(json_schema({"type": "array", "items": {"type": "integer"}, "maxItems": 4}))
    tokens = walk(matcher, random.Random(seed), 60)
    if matcher.finished:
        text = text_of(tokens)
        assert text == json.dumps(json.loads(text))
