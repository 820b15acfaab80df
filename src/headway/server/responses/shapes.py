"""Response bodies, as OpenAI defines them, plus `time_info` and `headway`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from headway.server.openai.shapes import HeadwayInfo, TimeInfo, TokenLogprobs
from headway.server.shapes import Shape

PAGE = 20
LARGEST_PAGE = 100
"""Items."""

Status = Literal["in_progress", "completed", "incomplete"]


class InputDetails(Shape):
    cached_tokens: int = Field(description="prompt tokens found in the prefix cache; part of input_tokens")
    cache_write_tokens: int


class OutputDetails(Shape):
    reasoning_tokens: int


class ResponseUsage(Shape):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class OutputText(Shape):
    type: Literal["output_text"]
    text: str
    annotations: list[Any]
    logprobs: list[TokenLogprobs]


class OutputMessage(Shape):
    type: Literal["message"]
    id: str
    status: Status
    role: Literal["assistant"]
    content: list[OutputText]


class FunctionCall(Shape):
    type: Literal["function_call"]
    id: str
    status: Status = Field(description="completed if the arguments are there to their end")
    call_id: str
    name: str
    arguments: str = Field(description="JSON")


class IncompleteDetails(Shape):
    reason: Literal["max_output_tokens"]


class ResponseFailure(Shape):
    code: Literal["server_error"]
    message: str


class ResponseAnswer(Shape):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: ResponseFailure | None
    incomplete_details: IncompleteDetails | None
    output: list[OutputMessage | FunctionCall]
    usage: ResponseUsage | None
    service_tier: str = Field(description="the tier that was served")
    time_info: TimeInfo | None = None
    headway: HeadwayInfo | None = None
    background: Literal[False]
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: None
    metadata: dict[str, str]
    model: str
    parallel_tool_calls: bool
    previous_response_id: str | None
    prompt_cache_key: str | None
    reasoning: dict[str, None]
    safety_identifier: str | None
    temperature: float
    text: dict[str, Any]
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    top_logprobs: int
    top_p: float
    truncation: Literal["auto", "disabled"]
    user: str | None


class InputTokens(Shape):
    object: Literal["response.input_tokens"]
    input_tokens: int


class DeletedResponse(Shape):
    id: str
    object: Literal["response"]
    deleted: Literal[True]


class ItemList(Shape):
    object: Literal["list"]
    data: list[dict[str, Any]] = Field(description="messages, function calls and their outputs")
    first_id: str
    last_id: str
    has_more: bool
