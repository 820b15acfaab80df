"""Request bodies, as OpenAI defines them for its Responses API. Input items are read in `items.py`, for their kinds are many
and grow.

What isn't here is ignored: `reasoning`, `context_management`, `max_tool_calls`, `prompt_cache_options` and whatever new clients
send.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from headway.server.body import Body
from headway.server.described import (
    ONLY_NULL,
    Background,
    FormatType,
    FunctionName,
    FunctionType,
    Input,
    ToolChoice,
)
from headway.server.openai.schemas import GenerationBody, Positive, ResponseFormat

LOGPROBS = "message.output_text.logprobs"
"""The word in `include` that asks for log probabilities."""

Word = Annotated[str, Field(max_length=64)]
Value = Annotated[str, Field(max_length=512)]


class FunctionTool(Body):
    """A function of the client's own. Tools that OpenAI runs or describes have another type, and no name."""

    type: FunctionType = Field(description='"function"')
    name: FunctionName = Field(None, description="a string")
    description: str | None = Field(None, description="a string")
    parameters: dict[str, Any] | None = Field(None, description="a JSON schema object")
    strict: bool | None = Field(None, description="true or false")


class TextFormat(Body):
    """strict: true and false are the same here, the output always fits the schema."""

    type: FormatType = Field(description='one of "text", "json_object", "json_schema"')
    name: str | None = Field(None, description="a string; ignored")
    description: str | None = Field(None, description="a string; ignored")
    schema_: dict[str, Any] | bool | None = Field(None, alias="schema", description="a JSON schema")
    strict: bool | None = Field(None, description="true or false; the output fits the schema either way")


class TextConfig(Body):
    format: TextFormat | None = Field(None, description='an object such as {"type": "text"}')


class PromptBody(GenerationBody):
    """What makes the prompt of a response."""

    input: Input = Field(None, description="a string or a list of items")
    instructions: str | None = Field(None, description="a string; it isn't carried over to the next response")
    previous_response_id: str | None = Field(
        None, description="the id of a response that is kept; its conversation goes before the input"
    )
    tools: list[FunctionTool] | None = Field(None, description="a list of tools")
    tool_choice: ToolChoice = Field(None, description='"none", "auto", "required", or an object that names a function')
    truncation: Literal["auto", "disabled"] | None = Field(
        None, description="one of auto, disabled; auto leaves out the oldest turns where the conversation is too long"
    )
    conversation: Annotated[str | dict[str, Any] | None, ONLY_NULL] = Field(
        None, description="null; conversations are not kept here"
    )
    prompt: Annotated[dict[str, Any] | None, ONLY_NULL] = Field(None, description="null; prompt templates are not kept here")


class ResponsesRequest(PromptBody):
    max_output_tokens: Positive | None = Field(
        None, description="an integer of at least 1; lowered to the room that the prompt leaves, which is also the default"
    )
    max_tokens: Annotated[Positive | None, ONLY_NULL] = Field(None, description="null; here it is called max_output_tokens")
    response_format: Annotated[ResponseFormat | None, ONLY_NULL] = Field(
        None, description="null; here it is called text.format"
    )
    n: Annotated[int, Field(ge=1, le=1)] | None = Field(None, description="1; a response is one answer")
    store: bool | None = Field(None, description="true or false; true, the default, keeps the response for a while")
    metadata: Annotated[dict[Word, Value], Field(max_length=16)] | None = Field(
        None, description="an object of at most 16 strings of up to 512 characters, with keys of up to 64; kept and given back"
    )
    text: TextConfig | None = Field(None, description="an object")
    parallel_tool_calls: bool | None = Field(None, description="true or false; false lets one call through")
    include: list[str] | None = Field(None, description=f"a list of strings; {LOGPROBS} adds log probabilities")
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None, description="an integer from 0 to 20; counts where log probabilities are included"
    )
    background: Background = Field(None, description="false; responses are not made in the background")
    generate: bool | None = Field(
        None, description="true or false; false only prepares the prompt for the response that follows"
    )
    prompt_cache_key: str | None = Field(None, description="a string; given back")
    safety_identifier: str | None = Field(None, description="a string; given back")


class ResponseCreate(ResponsesRequest):
    """The message of a WebSocket that asks for a response."""

    type: Literal["response.create"] = Field(description='"response.create"')
    stream_id: str | None = Field(None, description="a string; messages of one stream_id are answered one after the other")
