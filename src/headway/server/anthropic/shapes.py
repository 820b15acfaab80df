"""Response bodies, as Anthropic defines them, plus `time_info` and `headway`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from headway.server.openai.shapes import HeadwayInfo, TimeInfo
from headway.server.shapes import Shape


class MessageUsage(Shape):
    input_tokens: int = Field(description="prompt tokens that were computed; with the cached ones it is the whole prompt")
    cache_creation_input_tokens: int
    cache_read_input_tokens: int = Field(description="prompt tokens found in the prefix cache")
    output_tokens: int
    service_tier: Literal["standard"]
    speed: Literal["standard", "fast"] = Field(description="fast, or standard for all else that was served")


class TextBlock(Shape):
    type: Literal["text"]
    text: str


class ToolUseBlock(Shape):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"]


class MessageAnswer(Shape):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[TextBlock | ToolUseBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage
    time_info: TimeInfo | None = None
    headway: HeadwayInfo | None = None


class TokenCount(Shape):
    input_tokens: int


class MessageErrorDetail(Shape):
    type: str
    message: str


class MessageError(Shape):
    type: Literal["error"]
    error: MessageErrorDetail
    request_id: str


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": MessageError, "description": text}
    for status, text in {
        400: "The request can't be served as asked; the message names the field.",
        404: "No such model.",
        413: "The body is too large.",
        429: "No seat is free at fast or of a spark; `retry-after` says when to come again.",
        529: "No seat is free at standard, or the server is shutting down.",
    }.items()
}
