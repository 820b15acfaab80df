"""Response bodies, as OpenAI defines them, plus `time_info` and `headway`. They document the API; the tests hold the
bytes that are sent against them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headway.server.shapes import Shape

Finish = Literal["stop", "length", "tool_calls"]


class PromptDetails(Shape):
    cached_tokens: int = Field(description="prompt tokens found in the prefix cache; part of prompt_tokens")


class CompletionDetails(Shape):
    reasoning_tokens: int
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int


class UsageInfo(Shape):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class TimeInfo(Shape):
    """Seconds; of several choices the slowest counts."""

    queue_time: float
    prompt_time: float
    completion_time: float
    total_time: float


class HeadwayInfo(Shape):
    mode: str = Field(description="the mode that was served")
    requested_mode: str = Field(description="the mode that was asked for")
    billed_mode: str = Field(description="the mode that is paid for: the one that was served")
    pace: float = Field(description="tokens per second promised")
    attainment: float = Field(description="share of the tokens after the first that came by their deadline")
    engine_seconds: float = Field(description="seconds of the device charged to this request")
    drafted_tokens: int = Field(description="guesses at the next tokens that were verified")
    accepted_tokens: int = Field(description="guesses that proved right, part of the completion tokens")


class TokenInfo(Shape):
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprobs(TokenInfo):
    top_logprobs: list[TokenInfo]


class ChatLogprobs(Shape):
    content: list[TokenLogprobs]
    refusal: None = None


class AnsweredFunction(Shape):
    name: str
    arguments: str = Field(description="JSON")


class AnsweredCall(Shape):
    id: str
    type: Literal["function"]
    function: AnsweredFunction


class AssistantMessage(Shape):
    role: Literal["assistant"]
    content: str | None = Field(description="null if there are only tool calls")
    refusal: None = None
    tool_calls: list[AnsweredCall] | None = None


class ChatChoice(Shape):
    index: int
    message: AssistantMessage
    logprobs: ChatLogprobs | None
    finish_reason: Finish


class Answer(Shape):
    id: str
    created: int
    model: str
    service_tier: str = Field(description="the tier that was served")
    system_fingerprint: str


class ChatCompletion(Answer):
    object: Literal["chat.completion"]
    choices: list[ChatChoice]
    usage: UsageInfo
    time_info: TimeInfo
    headway: HeadwayInfo


class FunctionDelta(Shape):
    name: str | None = None
    arguments: str


class ToolCallDelta(Shape):
    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionDelta


class ChatDelta(Shape):
    """id, type and name of a tool call come once, with its first delta."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class ChatChunkChoice(Shape):
    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: Finish | None


class ChatChunk(Answer):
    object: Literal["chat.completion.chunk"]
    choices: list[ChatChunkChoice]
    usage: UsageInfo | None = None
    time_info: TimeInfo | None = None
    headway: HeadwayInfo | None = None


class CompletionLogprobs(Shape):
    tokens: list[str]
    token_logprobs: list[float | None] = Field(description="null for the first token of a prompt (echo), which follows nothing")
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(Shape):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Finish | None


class Completion(Answer):
    """Also the chunk of a stream; there usage comes last and choices may be empty."""

    object: Literal["text_completion"]
    choices: list[CompletionChoice]
    usage: UsageInfo | None = None
    time_info: TimeInfo | None = None
    headway: HeadwayInfo | None = None


class ModelCard(Shape):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int = Field(description="tokens that prompt and output may have together")
    service_tiers: list[str]
    pace: dict[str, float] = Field(description="tokens per second promised, by mode")
    promises: dict[str, dict[str, int]] = Field(
        description="requests that can be promised their pace at once: at most, and while every standard seat is taken"
    )


class ModelList(Shape):
    object: Literal["list"]
    data: list[ModelCard]


class ErrorInfo(Shape):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(Shape):
    error: ErrorInfo
