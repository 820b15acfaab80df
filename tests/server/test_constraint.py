"""Response formats, from the body to the request that the engine gets."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from headway.grammar.matcher import Matcher

from .scripted import ByteTokenizer, World

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def ask(world: World, path: str, response_format: Any, **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi", "response_format": response_format}
    return TestClient(world.app).post(path, json={**body, **fields})


def accepts(matcher: Matcher, text: str) -> bool:
    return matcher.fitting(ByteTokenizer().encode(text)) == len(text)


def schema(value: Any, **more: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": value, **more}}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("strict", [True, False, None])
def test_a_schema_constrains_every_choice(path: str, strict: bool | None) -> None:
    world = World()
    assert ask(world, path, schema({"const": "yes"}, strict=strict), n=2).status_code == 200
    first, second = (request.constraint for request in world.generator.requests)
    assert first is not None and first is second
    assert accepts(first.start(), '"yes"') and not accepts(first.start(), '"no"')


def test_any_object_and_plain_text() -> None:
    world = World()
    for response_format in ({"type": "json_object"}, {"type": "text"}, None):
        assert ask(world, CHAT, response_format).status_code == 200
    anything, text, nothing = (request.constraint for request in world.generator.requests)
    assert anything is not None and accepts(anything.start(), '{"a": [1, null]}') and not accepts(anything.start(), "[")
    assert text is None and nothing is None


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_what_cannot_be_kept_is_a_400_with_the_place(path: str) -> None:
    response = ask(World(), path, schema({"properties": {"a": {"not": {}}}}))
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "response_format"
    assert error["message"] == "'response_format' can't be used: the keyword 'not' at #/properties/a is not supported."


def test_what_was_asked_for_before_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    yes, no = schema({"const": "yes"}), schema({"const": "no"})
    for response_format in (yes, no):
        assert ask(world, CHAT, response_format).status_code == 200
    monkeypatch.setattr(world.served.grammars, "worker", None)
    for response_format in (yes, no):
        assert ask(world, CHAT, response_format).status_code == 200
    first, second, again, again_second = (request.constraint for request in world.generator.requests)
    assert again is first is not second and again_second is second
