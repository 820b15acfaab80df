"""OpenAI's Responses for the tests: events put together again by a state machine, each held against the SDK's own types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, get_args

import openai
from openai.types.responses import Response, ResponsesServerEvent

from cases.client import Client, Json
from cases.messages import read_named

RESPONSES = "/v1/responses"
OURS = ("time_info", "headway")
"""What headway adds to a response that has ended."""
EVENT_TYPES = {get_args(each.model_fields["type"].annotation)[0]: each for each in get_args(get_args(ResponsesServerEvent)[0])}


def body(client: Client, given: Any = "Say hi.", **fields: Any) -> Json:
    """Of a greedy request."""
    return {"model": client.model, "input": given, "max_output_tokens": 24, "temperature": 0, **fields}


def ask(client: Client, request: Json) -> Json:
    """The response that a request must give, streamed or not."""
    if request.get("stream"):
        with open_events(client, request) as events:
            return join_events(events)
    return checked(client.ok(RESPONSES, request))


@contextmanager
def open_events(client: Client, request: Json) -> Iterator[Iterator[Json]]:
    with closing(client.connect()) as connection:
        connection.request("POST", RESPONSES, json.dumps({**request, "stream": True}))
        response = connection.getresponse()
        assert response.status == 200, (response.status, response.read())
        assert response.getheader("content-type", "").startswith("text/event-stream")
        yield read_named(response)


def checked(response: Json) -> Json:
    """It is as the SDK has it: nothing is missing and nothing is there that its types don't know, but for OURS, which are
    there once it has ended well."""
    ended = response["status"] in ("completed", "incomplete")
    assert [name in response for name in OURS] == [ended, ended], response
    nothing_unknown(Response.model_validate({key: value for key, value in response.items() if key not in OURS}))
    return response


def nothing_unknown(value: Any) -> None:
    """No part of an SDK's object has fields that its type doesn't name."""
    if isinstance(value, openai.BaseModel):
        assert not value.model_extra, (type(value), value.model_extra)
        for name in type(value).model_fields:
            nothing_unknown(getattr(value, name))
    elif isinstance(value, list | tuple):
        for each in value:
            nothing_unknown(each)
    elif isinstance(value, dict):
        for each in value.values():
            nothing_unknown(each)


def checked_event(event: Json) -> Json:
    plain = event
    if "response" in event:
        checked(event["response"])
        plain = {**event, "response": {key: value for key, value in event["response"].items() if key not in OURS}}
    nothing_unknown(EVENT_TYPES[event["type"]].model_validate(plain))
    return event


def join_events(events: Iterable[Json]) -> Json:
    """The response that events add up to; any other order, number or index fails."""
    machine = Machine()
    for number, event in enumerate(events):
        assert event["sequence_number"] == number, event
        machine.take(checked_event(event))
    assert machine.ended is not None, "the stream ended without a last event"
    return machine.ended


class Machine:
    """What may follow what: created, in_progress, the items one after the other, one end."""

    def __init__(self) -> None:
        self.state = "new"
        self.items: list[Json] = []
        self.text = ""
        self.logprobs: list[Json] = []
        self.ended: Json | None = None

    def take(self, event: Json) -> None:
        kind = event["type"].removeprefix("response.")
        handler = {
            ("new", "created"): self._begins,
            ("created", "in_progress"): self._begins,
            ("between", "output_item.added"): self._item_added,
            ("message", "content_part.added"): self._part_added,
            ("text", "output_text.delta"): self._delta,
            ("text", "output_text.done"): self._text_done,
            ("text done", "content_part.done"): self._part_done,
            ("part done", "output_item.done"): self._item_done,
            ("call", "function_call_arguments.delta"): self._delta,
            ("call", "function_call_arguments.done"): self._arguments_done,
            ("call done", "output_item.done"): self._item_done,
            ("between", "completed"): self._ends,
            ("between", "incomplete"): self._ends,
        }.get((self.state, kind))
        if handler is None and kind == "failed" and self.state not in ("new", "ended"):
            handler = self._ends
        assert handler is not None, f"{event} in state {self.state}"
        if "item_id" in event:
            assert event["item_id"] == self.items[-1]["id"], event
        if "output_index" in event and kind != "output_item.added":
            assert event["output_index"] == len(self.items) - 1, event
        assert event.get("content_index", 0) == 0, event
        handler(event)

    def _begins(self, event: Json) -> None:
        response = event["response"]
        assert response["status"] == "in_progress" and response["output"] == [] and response["usage"] is None
        self.state = {"new": "created", "created": "between"}[self.state]

    def _item_added(self, event: Json) -> None:
        item = event["item"]
        assert event["output_index"] == len(self.items) and item["status"] == "in_progress", event
        assert item.get("content", []) == [] and item.get("arguments", "") == ""
        assert item["id"] not in {each["id"] for each in self.items}
        self.items.append(item)
        self.text, self.logprobs = "", []
        self.state = "message" if item["type"] == "message" else "call"

    def _part_added(self, event: Json) -> None:
        assert event["part"] == {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self.state = "text"

    def _delta(self, event: Json) -> None:
        self.text += event["delta"]
        self.logprobs += event.get("logprobs", [])

    def _text_done(self, event: Json) -> None:
        assert (event["text"], event["logprobs"]) == (self.text, self.logprobs), event
        self.state = "text done"

    def _part_done(self, event: Json) -> None:
        assert event["part"]["text"] == self.text and len(event["part"]["logprobs"]) == len(self.logprobs), event
        self.items[-1]["content"] = [event["part"]]
        self.state = "part done"

    def _arguments_done(self, event: Json) -> None:
        assert event["arguments"] == self.text, event
        self.items[-1]["arguments"] = self.text
        self.state = "call done"

    def _item_done(self, event: Json) -> None:
        item = event["item"]
        assert item["status"] in ("completed", "incomplete")
        self.items[-1]["status"] = item["status"]
        assert item == self.items[-1], event
        self.state = "between"

    def _ends(self, event: Json) -> None:
        response = event["response"]
        assert event["type"] == f"response.{response['status']}", event
        if response["status"] != "failed":
            assert response["output"] == self.items, event
        self.ended = response
        self.state = "ended"


def text_of(response: Json) -> str:
    messages = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part["text"] for item in messages for part in item["content"])


def calls_of(response: Json) -> list[Json]:
    return [item for item in response["output"] if item["type"] == "function_call"]
