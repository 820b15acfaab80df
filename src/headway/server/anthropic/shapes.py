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
    """details: for clients to act on, where there are any."""

    type: str
    message: str
    details: dict[str, Any] | None = None


class MessageError(Shape):
    type: Literal["error"]
    error: MessageErrorDetail
    request_id: str


class MessageModel(Shape):
    type: Literal["model"]
    id: str
    display_name: str
    created_at: str
    lifecycle: Literal["active"]
    max_input_tokens: int
    max_tokens: int


class MessageModelList(Shape):
    data: list[MessageModel]
    has_more: bool
    first_id: str
    last_id: str
