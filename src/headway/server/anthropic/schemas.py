"""Request bodies, as Anthropic defines them. Content blocks are read in `blocks.py`, for their kinds are many and grow.

What isn't here is ignored: `metadata`, `service_tier`, `thinking`, `context_management`, `cache_control` and whatever new
clients send.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from headway.server.body import Body
from headway.server.described import Content, CustomType, InputSchema, SystemContent

Share = Annotated[float, Field(ge=0, le=1)]


class Turn(Body):
    role: Literal["user", "assistant", "system"] = Field(description="one of user, assistant, system")
    content: Content = Field(description="a string or a list of content blocks")


class ToolDefinition(Body):
    """A tool of the client's own. Those that Anthropic runs or defines have another type."""

    name: str = Field(description="a string")
    type: CustomType = Field(None, description='"custom" or left out')
    description: str | None = Field(None, description="a string")
    input_schema: InputSchema = Field(None, description="a JSON schema object")


class ToolChoice(Body):
    type: Literal["auto", "any", "tool", "none"] = Field(description="one of auto, any, tool, none")
    name: str | None = Field(None, description="a string")
    disable_parallel_tool_use: bool | None = Field(None, description="true or false")


class OutputConfig(Body):
    format: dict[str, Any] | None = Field(None, description='an object such as {"type": "json_schema", "schema": {...}}')


class CountTokensRequest(Body):
    model: str = Field(description="the id of a model; GET /v1/models lists them")
    messages: Annotated[list[Turn], Field(min_length=1, fail_fast=True)] = Field(description="a list of at least one message")
    system: SystemContent | None = Field(None, description="a string or a list of text blocks")
    tools: list[ToolDefinition] | None = Field(None, description="a list of tools")
    tool_choice: ToolChoice | None = Field(None, description='an object such as {"type": "auto"}')
    speed: Literal["standard", "fast"] | None = Field(None, description="one of standard, fast")


class MessagesRequest(CountTokensRequest):
    max_tokens: Annotated[int, Field(ge=1)] = Field(
        description="an integer of at least 1; lowered to the room that the prompt leaves"
    )
    stop_sequences: list[Annotated[str, Field(min_length=1)]] | None = Field(
        None, description="a list of strings, none of them empty; the output ends before the first of them"
    )
    temperature: Share | None = Field(None, description="a number from 0 to 1; 0 takes the likeliest token each time")
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(None, description="a number above 0 and up to 1")
    top_k: Annotated[int, Field(ge=0)] | None = Field(None, description="an integer of at least 0; 0 keeps every token")
    stream: bool | None = Field(None, description="true or false")
    output_config: OutputConfig | None = Field(None, description="an object")
    thread: Any = Field(None, description="null; conversations are not kept here")
