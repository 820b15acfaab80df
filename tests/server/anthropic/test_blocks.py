"""Turns of content blocks as the messages that templates know."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import RequestError
from headway.server.anthropic.blocks import prefill_of, template_messages, template_tools
from headway.server.anthropic.schemas import ToolDefinition, Turn

Json = dict[str, Any]
USE: Json = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {"zone": "UTC"}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "12:00"}]}


def text(value: str, **more: Any) -> Json:
    return {"type": "text", "text": value, **more}


def turns(*pairs: tuple[str, Any]) -> list[Turn]:
    return [Turn.model_validate({"role": role, "content": content}) for role, content in pairs]


def messages(*pairs: tuple[str, Any], system: Any = None) -> list[Json]:
    return template_messages(system, turns(*pairs))


def test_text_is_text_in_every_form() -> None:
    plain = messages(("user", "Say hi"), system="Be brief.")
    assert plain == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hi"}]
    parts = [text("Say ", cache_control={"type": "ephemeral"}), text("hi", citations=[])]
    assert messages(("user", parts), system=[text("Be "), text("brief.")]) == plain


def test_a_tool_turn() -> None:
    found = messages(
        ("user", "What time?"),
        ("assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("Let me look."), USE]),
        ("user", [RESULT, text("And now?")]),
    )
    call = {"id": "toolu_1", "type": "function", "function": {"name": "now", "arguments": {"zone": "UTC"}}}
    assert found[1:] == [
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "toolu_1", "name": "now", "content": "12:00"},
        {"role": "user", "content": "And now?"},
    ]


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"content": "12:00"}, "12:00"),
        ({}, ""),
        ({"content": "no clock", "is_error": True}, "Error: no clock"),
        ({"content": [text("a"), text("b")]}, "ab"),
        ({"content": []}, ""),
    ],
)
def test_results(result: Json, content: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", **result}
    assert messages(("user", [block])) == [{"role": "tool", "tool_call_id": "t", "content": content}]


def test_turns_of_one_role_are_one() -> None:
    found = messages(("user", "a"), ("user", "b"), ("assistant", [USE]), ("assistant", "c"), ("system", "s"), ("user", "d"))
    assert [(message["role"], message["content"]) for message in found] == [
        ("user", "a\n\nb"),
        ("assistant", "c"),
        ("system", "s"),
        ("user", "d"),
    ]
    assert found[1]["tool_calls"][0]["function"]["name"] == "now"


def test_the_billing_header_of_claude_code_is_no_prompt() -> None:
    for system in (
        [text("x-anthropic-billing-header: cc_version=2.1.42; cch=AAAAA;"), text("You are helpful.")],
        "x-anthropic-billing-header: cch=BBBBB;\nYou are helpful.",
        [text("You are helpful.")],
    ):
        assert messages(("user", "hi"), system=system)[0] == {"role": "system", "content": "You are helpful."}
    assert messages(("user", "hi"), system=[text("x-anthropic-billing-header: a")])[0]["role"] == "user"
    assert "billing" in messages(("user", "hi"), system="See x-anthropic-billing-header: a")[0]["content"]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "messages[0].content"),
        ([{"type": "image", "source": {"type": "base64", "data": ""}}], "messages[0].content[0]"),
        ([text("a"), {"type": "document", "source": {}}], "messages[0].content[1]"),
        ([{**RESULT, "content": [{"type": "image", "source": {}}]}], "messages[0].content[0].content[0]"),
        ([{**RESULT, "content": 5}], "messages[0].content[0]"),
        ([{**RESULT, "content": ["a"]}], "messages[0].content[0]"),
        ([{"type": "tool_result", "content": "a"}], "messages[0].content[0]"),
        ([USE], "messages[0].content[0]"),
        ([{"type": "text"}], "messages[0].content[0]"),
        ([{}], "messages[0].content[0]"),
    ],
)
def test_what_is_no_text_is_refused_by_name(content: Any, place: str) -> None:
    with pytest.raises(RequestError) as refused:
        messages(("user", content))
    assert (refused.value.status, refused.value.param) == (400, place)


@pytest.mark.parametrize("use", [{"id": 1}, {"name": None}, {"input": "{}"}])
def test_a_call_must_be_whole(use: Json) -> None:
    with pytest.raises(RequestError, match="must have an id, a name"):
        messages(("user", "a"), ("assistant", [{**USE, **use}]))


def test_prefill() -> None:
    assert prefill_of(turns(("user", "a"))) is None
    assert prefill_of(turns(("user", "a"), ("assistant", [USE]))) is None
    assert prefill_of(turns(("user", "a"), ("assistant", [text("b"), text("c")]))) == "bc"
    assert prefill_of(turns(("user", "a"), ("assistant", ""))) == ""


def test_tools() -> None:
    schema = {"type": "object", "properties": {"zone": {"type": "string"}}}
    given = [ToolDefinition.model_validate({"name": "now", "input_schema": schema, "strict": True, "defer_loading": True})]
    assert template_tools(given) == [{"type": "function", "function": {"name": "now", "parameters": schema}}]
