"""The events of a streamed response, as OpenAI defines them, by their type. A WebSocket sends them too, with the `stream_id` of
their request where it had one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from headway.server.responses.shapes import FunctionCall, OutputMessage, OutputText, ResponseAnswer
from headway.server.shapes import Shape


class Event(Shape):
    sequence_number: int


class ResponseEvent(Event):
    """created and in_progress have the response as it begins; one of the others is the last event."""

    type: Literal[
        "response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed"
    ]  # fmt: skip
    response: ResponseAnswer


class ItemEvent(Event):
    type: Literal["response.output_item.added", "response.output_item.done"]
    output_index: int
    item: OutputMessage | FunctionCall


class PartEvent(Event):
    type: Literal["response.content_part.added", "response.content_part.done"]
    item_id: str
    output_index: int
    content_index: int
    part: OutputText


class ShortToken(Shape):
    token: str
    logprob: float


class ShortLogprobs(ShortToken):
    top_logprobs: list[ShortToken]


class TextDeltaEvent(Event):
    type: Literal["response.output_text.delta"]
    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: list[ShortLogprobs]


class TextDoneEvent(Event):
    type: Literal["response.output_text.done"]
    item_id: str
    output_index: int
    content_index: int
    text: str
    logprobs: list[ShortLogprobs]


class ArgumentsDeltaEvent(Event):
    type: Literal["response.function_call_arguments.delta"]
    item_id: str
    output_index: int
    delta: str


class ArgumentsDoneEvent(Event):
    type: Literal["response.function_call_arguments.done"]
    item_id: str
    output_index: int
    arguments: str


EVENTS: Mapping[str, type[Shape]] = {
    "response.created": ResponseEvent,
    "response.in_progress": ResponseEvent,
    "response.output_item.added": ItemEvent,
    "response.content_part.added": PartEvent,
    "response.output_text.delta": TextDeltaEvent,
    "response.output_text.done": TextDoneEvent,
    "response.content_part.done": PartEvent,
    "response.function_call_arguments.delta": ArgumentsDeltaEvent,
    "response.function_call_arguments.done": ArgumentsDoneEvent,
    "response.output_item.done": ItemEvent,
    "response.completed": ResponseEvent,
    "response.incomplete": ResponseEvent,
    "response.failed": ResponseEvent,
}
