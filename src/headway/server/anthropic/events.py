"""The events of a streamed message, as Anthropic defines them, by their type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from headway.server.anthropic.shapes import (
    MessageAnswer,
    MessageError,
    MessageUsage,
    StopReason,
    TextBlock,
    ToolUseBlock,
)
from headway.server.openai.shapes import HeadwayInfo, TimeInfo
from headway.server.shapes import Shape


class MessageStart(Shape):
    """The message is empty yet; its usage has the prompt's tokens."""

    type: Literal["message_start"]
    message: MessageAnswer


class ContentBlockStart(Shape):
    type: Literal["content_block_start"]
    index: int
    content_block: TextBlock | ToolUseBlock


class TextDelta(Shape):
    type: Literal["text_delta"]
    text: str


class InputJsonDelta(Shape):
    type: Literal["input_json_delta"]
    partial_json: str


class ContentBlockDelta(Shape):
    type: Literal["content_block_delta"]
    index: int
    delta: TextDelta | InputJsonDelta


class ContentBlockStop(Shape):
    type: Literal["content_block_stop"]
    index: int


class MessageEnding(Shape):
    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Shape):
    """usage: of the whole message, not what came since the last event."""

    type: Literal["message_delta"]
    delta: MessageEnding
    usage: MessageUsage
    time_info: TimeInfo
    headway: HeadwayInfo


class MessageStop(Shape):
    type: Literal["message_stop"]


class Ping(Shape):
    """Shows in a pause that the stream is alive."""

    type: Literal["ping"]


EVENTS: Mapping[str, type[Shape]] = {
    "message_start": MessageStart,
    "content_block_start": ContentBlockStart,
    "content_block_delta": ContentBlockDelta,
    "content_block_stop": ContentBlockStop,
    "message_delta": MessageDelta,
    "message_stop": MessageStop,
    "ping": Ping,
    "error": MessageError,
}
