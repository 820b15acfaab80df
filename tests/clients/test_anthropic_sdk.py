"""Anthropic's official Python SDK: against the real server, and against scripted ones that call tools or have no seat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.types import Message
from cases.client import Client
from server.live import live

HELLO: Any = [{"role": "user", "content": "Say hello."}]
TOOL: Any = {"name": "now", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}
CALL = 'Look. <tool_call>{"name": "now", "arguments": {"zone": "UTC"}}</tool_call>'
SPEEDS = pytest.mark.parametrize("speed", ["standard", "fast"])


def sdk_for(client: Client, retries: int = 0) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=client.url, api_key="none", max_retries=retries)


@pytest.fixture(scope="module")
def sdk(request: pytest.FixtureRequest) -> anthropic.Anthropic:
    return sdk_for(request.getfixturevalue("server"))


@pytest.fixture(scope="module")
def calling() -> Iterator[anthropic.Anthropic]:
    """A server whose model looks before it answers, every time."""
    with live({"tokens": list(CALL.encode())}) as (_, client):
        yield sdk_for(client)


@pytest.mark.model
@SPEEDS
def test_a_message(sdk: anthropic.Anthropic, server: Client, speed: Any) -> None:
    message = sdk.messages.create(model=server.model, max_tokens=12, messages=HELLO, speed=speed, system="Be brief.")
    assert isinstance(message, Message) and message.content[0].type == "text" and message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.speed == speed and message.usage.input_tokens > 0
    assert message._request_id is not None and message._request_id.startswith("req_")


@pytest.mark.model
@SPEEDS
def test_the_accumulated_stream_is_the_whole_message(sdk: anthropic.Anthropic, server: Client, speed: Any) -> None:
    fields: dict[str, Any] = {"model": server.model, "max_tokens": 12, "messages": HELLO, "extra_body": {"temperature": 0}}
    whole = sdk.messages.create(**fields)
    with sdk.messages.stream(**fields, speed=speed) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].type == whole.content[0].type == "text"
    assert text == final.content[0].text == whole.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    counted = sdk.messages.count_tokens(model=server.model, messages=HELLO).input_tokens
    for usage in (final.usage, whole.usage):
        assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted
    assert final.usage.speed == speed


@pytest.mark.model
def test_beta_messages(sdk: anthropic.Anthropic, server: Client) -> None:
    message = sdk.beta.messages.create(
        model=server.model, max_tokens=4, messages=HELLO, speed="fast", betas=["fast-mode-2026-02-01"]
    )
    assert message.usage.speed == "fast"


@pytest.mark.model
def test_models(sdk: anthropic.Anthropic, server: Client) -> None:
    assert [model.id for model in sdk.models.list()] == [server.model, f"{server.model}-fast"]
    card = sdk.models.retrieve(server.model)
    assert card.type == "model" and card.created_at.year >= 1970 and card.max_input_tokens == 8191


@pytest.mark.model
def test_errors_have_their_classes(sdk: anthropic.Anthropic, server: Client) -> None:
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        sdk.messages.create(model=server.model, max_tokens=0, messages=HELLO)
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: .* tokens > 8191 maximum"):
        sdk.messages.create(model=server.model, max_tokens=5, messages=[{"role": "user", "content": "word " * 10_000}])
    with pytest.raises(anthropic.NotFoundError) as missing:
        sdk.messages.create(model="other", max_tokens=5, messages=HELLO)
    assert missing.value.request_id is not None
    with pytest.raises(anthropic.NotFoundError):
        sdk.models.retrieve("other")


def test_tools(calling: anthropic.Anthropic) -> None:
    fields: dict[str, Any] = {"model": "m", "max_tokens": 200, "messages": HELLO, "tools": [TOOL]}
    whole = calling.messages.create(**fields)
    with calling.messages.stream(**fields) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    for message in (whole, final):
        text, call = message.content
        assert text.type == "text" and text.text == "Look."
        assert call.type == "tool_use" and (call.name, call.input) == ("now", {"zone": "UTC"})
        assert message.stop_reason == "tool_use"
    assert "input_json" in kinds and kinds.count("content_block_stop") == 2
    result: Any = {"type": "tool_result", "tool_use_id": final.content[1].id, "content": [{"type": "text", "text": "12:00"}]}
    turns: Any = [*HELLO, {"role": "assistant", "content": final.content}, {"role": "user", "content": [result]}]
    assert calling.messages.create(**{**fields, "messages": turns}).stop_reason == "tool_use"


def test_the_tool_runner_sends_the_whole_conversation(calling: anthropic.Anthropic) -> None:
    """It asks for a thread, a conversation that the server keeps, and does without when that is refused."""
    zones = []

    @anthropic.beta_tool
    def now(zone: str) -> str:
        """The time."""
        zones.append(zone)
        return "12:00"

    runner = calling.beta.messages.tool_runner(model="m", max_tokens=200, messages=HELLO, tools=[now], max_iterations=2)
    first, second = (message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0) for message in runner)
    assert zones == ["UTC", "UTC"] and second > first
    with pytest.raises(anthropic.types.ThreadUnsupportedRequestError):
        calling.beta.messages.thread(model="m", max_tokens=5).send({"role": "user", "content": "hi"})


def test_without_a_fast_seat_the_client_drops_speed() -> None:
    """The fallback of the API's own documentation: no retries, catch the 429, the same again without speed."""
    with live({"tokens": [120], "times": 3}, fast_seats=0) as (_, client):
        sdk = sdk_for(client)
        fields: dict[str, Any] = {"model": "m", "max_tokens": 5, "messages": HELLO}
        with pytest.raises(anthropic.RateLimitError) as refused:
            sdk.messages.create(**fields, speed="fast")
        assert refused.value.response.headers["anthropic-fast-output-tokens-remaining"] == "0"
        assert int(refused.value.response.headers["retry-after"]) >= 1
        assert sdk.messages.create(**fields, speed=None).usage.speed == "standard"
        before = client.metric("headway_requests_total", mode="fast", outcome="refused")
        with pytest.raises(anthropic.RateLimitError):
            sdk_for(client, retries=2).messages.create(**fields, speed="fast")
        assert client.metric("headway_requests_total", mode="fast", outcome="refused") == before + 3


def test_a_server_without_any_seat_is_overloaded() -> None:
    with live({"tokens": [120]}, seats=0) as (_, client), pytest.raises(anthropic.OverloadedError):
        sdk_for(client).messages.create(model="m", max_tokens=5, messages=HELLO)


def test_a_stream_that_fails_raises() -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        sdk = sdk_for(client)
        with pytest.raises(anthropic.APIStatusError, match="the engine failed"):
            list(sdk.messages.create(model="m", max_tokens=5, messages=HELLO, stream=True))
