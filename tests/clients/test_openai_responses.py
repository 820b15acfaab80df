"""The official Python SDK's Responses: against the real server, and against a scripted one that calls tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from cases.client import Client
from cases.responses import nothing_unknown
from openai.types.responses import Response
from server.live import live

TOOL: Any = {"type": "function", "name": "now", "description": "The time.", "parameters": {"type": "object"}, "strict": None}
CALL = 'Look. <tool_call>{"name": "now", "arguments": {"zone": "UTC"}}</tool_call>'
TIERS = pytest.mark.parametrize("tier", ["default", "priority"])


def sdk_for(client: Client, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{client.url}/v1", api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def sdk(request: pytest.FixtureRequest) -> openai.OpenAI:
    return sdk_for(request.getfixturevalue("server"))


@pytest.fixture(scope="module")
def calling() -> Iterator[Client]:
    """A server whose model looks before it answers, every time."""
    with live({"tokens": list(CALL.encode())}) as (_, client):
        yield client


def fields_of(server: Client, **more: Any) -> dict[str, Any]:
    return {"model": server.model, "input": "Say hello.", "max_output_tokens": 12, "temperature": 0, **more}


@pytest.mark.model
@TIERS
def test_create(sdk: openai.OpenAI, server: Client, tier: Any) -> None:
    response = sdk.responses.create(**fields_of(server, service_tier=tier, instructions="Be brief."))
    assert isinstance(response, Response) and response.output_text and response.service_tier == tier
    assert response.usage is not None and response.usage.input_tokens > 0
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.model_extra is not None and set(response.model_extra) == {"headway", "time_info"}
    assert response._request_id is not None


@pytest.mark.model
@TIERS
def test_the_accumulated_stream_is_the_whole_response(sdk: openai.OpenAI, server: Client, tier: Any) -> None:
    begun = sdk.responses.create(**fields_of(server)).output_text
    stop = {"stop": begun[6]}  # the helper knows no other end than "completed"
    whole = sdk.responses.create(**fields_of(server, extra_body=stop))
    with sdk.responses.stream(**fields_of(server, service_tier=tier, extra_body=stop)) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == whole.output_text == begun[: begun.index(begun[6])]
    assert final.usage is not None and whole.usage is not None
    assert (final.status, final.usage.output_tokens) == (whole.status, whole.usage.output_tokens)
    events = list(sdk.responses.create(**fields_of(server, stream=True)))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")


@pytest.mark.model
def test_with_raw_response(sdk: openai.OpenAI, server: Client) -> None:
    raw = sdk.responses.with_raw_response.create(**fields_of(server))
    assert raw.headers["x-request-id"].startswith("req_") and "x-ratelimit-remaining-requests" in raw.headers
    assert raw.parse().output_text


@pytest.mark.model
def test_a_stored_conversation(sdk: openai.OpenAI, server: Client) -> None:
    first = sdk.responses.create(**fields_of(server))
    second = sdk.responses.create(**fields_of(server, input="And goodbye.", previous_response_id=first.id))
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
    assert second.usage.input_tokens_details.cached_tokens > 0
    assert sdk.responses.retrieve(second.id).output_text == second.output_text
    items = list(sdk.responses.input_items.list(second.id, order="asc", limit=2))
    assert [item.type for item in items] == ["message"] * 3
    nothing_unknown(items)
    counted = sdk.responses.input_tokens.count(model=server.model, input="Say hello.")
    assert counted.input_tokens == first.usage.input_tokens
    stranger = sdk_for(server, "another")
    with pytest.raises(openai.NotFoundError):
        stranger.responses.retrieve(second.id)
    with pytest.raises(openai.BadRequestError) as missing:
        stranger.responses.create(**fields_of(server, previous_response_id=second.id))
    assert missing.value.code == "previous_response_not_found"
    sdk.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(second.id)


@pytest.mark.model
def test_errors_have_their_classes(sdk: openai.OpenAI, server: Client) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        sdk.responses.create(**fields_of(server, temperature=5))
    assert bad.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as long:
        sdk.responses.create(**fields_of(server, input="word " * 10_000))
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="web_search"):
        sdk.responses.create(**fields_of(server, tools=[{"type": "web_search"}]))
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.responses.create(model="other", input="hi")
    assert missing.value.code == "model_not_found"


@pytest.mark.model
def test_a_websocket(sdk: openai.OpenAI, server: Client) -> None:
    whole = sdk.responses.create(**fields_of(server))
    with sdk.responses.connect() as connection:
        first = over(connection, **fields_of(server, store=False))
        second = over(connection, **fields_of(server, input="And goodbye.", previous_response_id=first.id, store=False))
    assert first.output_text == whole.output_text and second.previous_response_id == first.id
    assert first.usage is not None and second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens


def over(connection: Any, **fields: Any) -> Response:
    """A response over the SDK's connection."""
    connection.response.create(**fields)
    for event in connection:
        assert event.type != "error", event
        if event.type in ("response.completed", "response.incomplete"):
            response: Response = event.response
            return response
    raise AssertionError("the connection ended")


@pytest.mark.model
def test_an_asynchronous_websocket(server: Client) -> None:
    async def check() -> str:
        sdk = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        async with sdk.responses.connect() as connection:
            await connection.response.create(**fields_of(server))
            async for event in connection:
                if event.type in ("response.completed", "response.incomplete"):
                    return event.response.output_text
        return ""

    assert asyncio.run(check())


def test_tools(calling: Client) -> None:
    sdk = sdk_for(calling)
    fields: dict[str, Any] = {"model": "m", "input": "What time is it?", "tools": [TOOL]}
    whole = sdk.responses.create(**fields)
    with sdk.responses.stream(**fields) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    for response in (whole, final):
        text, call = response.output
        assert text.type == "message" and response.output_text == "Look."
        assert call.type == "function_call" and (call.name, call.arguments) == ("now", '{"zone": "UTC"}')
    assert kinds.count("response.output_item.done") == 2 and "response.function_call_arguments.delta" in kinds
    call = whole.output[1]
    assert call.type == "function_call"
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "12:00"}
    follow = sdk.responses.create(model="m", previous_response_id=whole.id, input=[result], tools=[TOOL])
    replayed: Any = [{"role": "user", "content": "What time is it?"}, *(item.to_dict() for item in whole.output), result]
    again = sdk.responses.create(model="m", input=replayed, tools=[TOOL])
    assert follow.usage is not None and again.usage is not None
    assert follow.usage.input_tokens == again.usage.input_tokens


def test_tools_over_a_websocket(calling: Client) -> None:
    with sdk_for(calling).responses.connect() as connection:
        first = over(connection, model="m", input="What time is it?", tools=[TOOL], store=False)
        call = first.output[1]
        assert call.type == "function_call"
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "12:00"}
        second = over(connection, model="m", input=[result], previous_response_id=first.id, tools=[TOOL], store=False)
    assert second.status == "completed"


def test_a_stream_that_fails_says_so() -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        *_, last = sdk_for(client).responses.create(model="m", input="hi", stream=True)
        assert last.type == "response.failed" and last.response.error is not None
        assert last.response.error.message == "the engine failed"
