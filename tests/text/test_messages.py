"""Messages in all the shapes that clients send become one shape (C1, C3)."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import RequestError
from headway.text.messages import normalise


def call(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


def test_null_absent_and_empty_content_are_the_same() -> None:  # C1
    base = {"role": "assistant", "tool_calls": [call("{}")]}
    assert normalise([base]) == normalise([base | {"content": None}]) == normalise([base | {"content": ""}])


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_text_parts_are_joined_with_nothing_between(role: str) -> None:  # C3
    parts = [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi"}]
    assert normalise([{"role": role, "content": parts}]) == [{"role": role, "content": "Say hi"}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "empty list"),
        ([{"type": "image_url", "image_url": {"url": "x"}}], "'image_url'"),
        ([{"type": "text"}], "text"),
        ([{"text": "x"}], "None"),
        ([3], "an object"),
        (3, "a string"),
        ({"type": "text", "text": "x"}, "a string"),
    ],
)
def test_content_that_is_no_text_is_refused(content: Any, words: str) -> None:  # C3
    with pytest.raises(RequestError, match=words) as caught:
        normalise([{"role": "user", "content": content}])
    assert caught.value.status == 400
    assert (caught.value.param or "").startswith("messages[0].content")


@pytest.mark.parametrize("messages", [[], [{}], ["hi"], [{"role": 3, "content": "x"}]])
def test_what_is_no_chat_is_refused(messages: list[Any]) -> None:  # C7
    with pytest.raises(RequestError) as caught:
        normalise(messages)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("arguments", "plain"),
    [("{}", {}), ("", {}), (None, {}), ({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), ("{half", "{half"), ("[1]", "[1]")],
)
def test_arguments_become_an_object(arguments: Any, plain: Any) -> None:
    (message,) = normalise([{"role": "assistant", "tool_calls": [call(arguments)]}])
    assert message["tool_calls"][0]["function"]["arguments"] == plain


@pytest.mark.parametrize("calls", [None, []])
def test_no_calls_is_no_key(calls: Any) -> None:
    assert normalise([{"role": "assistant", "content": "x", "tool_calls": calls}]) == [{"role": "assistant", "content": "x"}]


@pytest.mark.parametrize("calls", [3, [3], [{}], [{"function": {}}], [{"function": {"name": 3}}]])
def test_calls_that_are_none_are_refused(calls: Any) -> None:
    with pytest.raises(RequestError):
        normalise([{"role": "assistant", "tool_calls": calls}])


def test_developer_is_system_and_other_keys_stay() -> None:
    (message,) = normalise([{"role": "developer", "content": "x", "name": "n"}])
    assert message == {"role": "system", "content": "x", "name": "n"}


def test_the_given_messages_are_left_as_they_are() -> None:
    given = {"role": "assistant", "content": None, "tool_calls": [call("{}")]}
    normalise([given])
    assert given == {"role": "assistant", "content": None, "tool_calls": [call("{}")]}
