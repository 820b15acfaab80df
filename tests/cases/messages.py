"""Anthropic's Messages for the strict client: events read and put together again, their order checked on the way."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from cases.client import Client, Json

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "none"}


def body(client: Client, content: Any = "Say hi.", **fields: Any) -> Json:
    """Of a greedy request. content: of one user turn, or, if its items have roles, the turns."""
    is_turns = isinstance(content, list) and content and "role" in content[0]
    turns = content if is_turns else [{"role": "user", "content": content}]
    return {"model": client.model, "messages": turns, "max_tokens": 24, "temperature": 0, **fields}


def ask(client: Client, request: Json) -> Json:
    """The message that a request must give, streamed or not."""
    if request.get("stream"):
        with open_events(client, request) as events:
            return join_events(list(events))
    reply = client.post(MESSAGES, request, HEADERS)
    assert reply.status == 200, reply
    message: Json = reply.json
    return message


@contextmanager
def open_events(client: Client, request: Json) -> Iterator[Iterator[Json]]:
    with closing(client.connect()) as connection:
        connection.request("POST", MESSAGES, json.dumps({**request, "stream": True}), HEADERS)
        response = connection.getresponse()
        assert response.status == 200, (response.status, response.read())
        assert response.getheader("content-type", "").startswith("text/event-stream")
        yield read_named(response)


def read_named(response: http.client.HTTPResponse) -> Iterator[Json]:
    """Every event must be `event: NAME`, `data: JSON` whose type is that name, and an empty line."""
    while line := response.readline():
        name, data, end = line.decode(), response.readline().decode(), response.readline()
        assert name.startswith("event: ") and data.startswith("data: ") and end == b"\n", (name, data, end)
        event: Json = json.loads(data.removeprefix("data: "))
        assert event["type"] == name.removeprefix("event: ").removesuffix("\n")
        yield event


def join_events(events: list[Json]) -> Json:
    """The message that events add up to; as a state machine, so that any other order fails."""
    events = [event for event in events if event["type"] != "ping"]
    first, *rest = events
    assert first["type"] == "message_start", first
    message: Json = first["message"]
    assert (message["content"], message["stop_reason"], message["stop_sequence"]) == ([], None, None)
    open_block: Json | None = None
    json_text = ""
    state = "blocks"
    for event in rest:
        match state, event["type"]:
            case "blocks", "content_block_start":
                assert open_block is None and event["index"] == len(message["content"]), event
                open_block, json_text = event["content_block"], ""
                assert open_block is not None and open_block.get("text", "") == "" and open_block.get("input", {}) == {}
                message["content"].append(open_block)
            case "blocks", "content_block_delta":
                assert open_block is not None and event["index"] == len(message["content"]) - 1, event
                if open_block["type"] == "text":
                    assert event["delta"]["type"] == "text_delta"
                    open_block["text"] += event["delta"]["text"]
                else:
                    assert event["delta"]["type"] == "input_json_delta"
                    json_text += event["delta"]["partial_json"]
            case "blocks", "content_block_stop":
                assert open_block is not None and event["index"] == len(message["content"]) - 1, event
                if open_block["type"] == "tool_use":
                    open_block["input"] = _parsed(json_text)
                open_block = None
            case "blocks", "message_delta":
                assert open_block is None, event
                message |= event["delta"] | {key: event[key] for key in ("time_info", "headway")}
                message["usage"] |= event["usage"]
                state = "ended"
            case "ended", "message_stop":
                state = "stopped"
            case _:
                raise AssertionError(f"{event} in state {state}")
    assert state == "stopped", state
    return message


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def text_of(message: Json) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def prompt_tokens(message: Json) -> int:
    """Of the whole prompt."""
    usage = message["usage"]
    total: int = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    return total
