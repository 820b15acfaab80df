"""Request bodies, as OpenAI defines them. Strict types; unknown fields are ignored, because new clients send new ones.

A field's description, up to the first semicolon, completes the sentence "'field' must be ..." in error messages.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from headway.server.body import Body
from headway.server.described import BIASES, ONLY_NULL, PROMPT, ChatToolChoice, NotEmpty, TextParts, Tier

MAX_SEED = 2**63 - 1

Penalty = Annotated[float, Field(ge=-2, le=2)]
Positive = Annotated[int, Field(ge=1)]
Strings = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=4)]
Texts = Annotated[list[str], Field(fail_fast=True)]
Ids = Annotated[list[int], Field(fail_fast=True)]


class StreamOptions(Body):
    include_usage: bool | None = Field(None, description="true or false; true adds a last chunk with the usage")


class Function(Body):
    name: str = Field(description="a string")
    description: str | None = Field(None, description="a string")
    parameters: dict[str, Any] | None = Field(None, description="a JSON schema object")
    strict: bool | None = Field(None, description="true or false")


class Tool(Body):
    type: Literal["function"] = Field(description='"function"')
    function: Function = Field(description="an object with the function's name, description and parameters")


class CalledFunction(Body):
    name: str = Field(description="a string")
    arguments: str | dict[str, Any] | None = Field(None, description="a string of JSON; empty means {}")


class ToolCall(Body):
    id: str | None = Field(None, description="a string")
    type: Literal["function"] = Field("function", description='"function"')
    function: CalledFunction = Field(description="an object with the function's name and arguments")


class Message(Body):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = Field(
        description="one of system, developer, user, assistant, tool; developer means system"
    )
    content: str | TextParts | None = Field(
        None, description="a string or a list of text parts; null only in a turn of the assistant"
    )
    name: str | None = Field(None, description="a string")
    tool_calls: list[ToolCall] | None = Field(None, description="a list of tool calls")
    tool_call_id: str | None = Field(None, description="a string")


class JsonSchema(Body):
    """strict: true and false are the same here, the output always fits the schema."""

    name: str | None = Field(None, description="a string; ignored")
    description: str | None = Field(None, description="a string; ignored")
    schema_: dict[str, Any] | bool = Field(alias="schema", description="a JSON schema")
    strict: bool | None = Field(None, description="true or false; the output fits the schema either way")


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"] = Field(description='one of "text", "json_object", "json_schema"')
    json_schema: JsonSchema | None = Field(None, description='an object such as {"name": "...", "schema": {...}}')

    @property
    def schema_asked(self) -> dict[str, Any] | bool | None:
        return None if self.json_schema is None else self.json_schema.schema_


class GenerationBody(Body):
    """What chat and completions have in common. null means the same as leaving a field out."""

    model: str = Field(description="the id of a model; GET /v1/models lists them")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        None, description="a number from 0 to 2; 0 takes the likeliest token each time, the default is 1"
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="a number above 0 and up to 1; the default 1 keeps every token"
    )
    top_k: Annotated[int, Field(ge=-1)] | None = Field(None, description="an integer of at least -1; 0 and -1 keep every token")
    min_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="a number from 0 to 1; the default 0 keeps every token"
    )
    max_tokens: Positive | None = Field(None, description="an integer of at least 1")
    min_tokens: Annotated[int, Field(ge=0)] | None = Field(
        None, description="an integer of at least 0; the output doesn't end before so many tokens"
    )
    stop: NotEmpty | Strings | None = Field(
        None,
        description="a string or a list of up to 4 strings, none of them empty; the output ends before the first of them",
    )
    ignore_eos: bool | None = Field(None, description="true or false; true goes on past the model's end of text")
    seed: Annotated[int, Field(ge=-1, le=MAX_SEED)] | None = Field(
        None, description="an integer from -1 to 2**63 - 1; every value is a seed, null draws one"
    )
    n: Annotated[int, Field(ge=1, le=128)] | None = Field(
        None, description="an integer from 1 to 128; choice i of a seeded request uses seed + i"
    )
    presence_penalty: Penalty | None = Field(None, description="a number from -2 to 2; looks at the output alone")
    frequency_penalty: Penalty | None = Field(None, description="a number from -2 to 2; looks at the output alone")
    repetition_penalty: Annotated[float, Field(ge=0.01, le=10)] | None = Field(
        None, description="a number from 0.01 to 10; 1 is off, looks at prompt and output"
    )
    logit_bias: Annotated[dict[str, Annotated[float, Field(ge=-100, le=100)]], BIASES] | None = Field(
        None, description="an object of token ids and numbers from -100 to 100"
    )
    response_format: ResponseFormat | None = Field(None, description='an object such as {"type": "json_object"}')
    stream: bool | None = Field(None, description="true or false")
    stream_options: StreamOptions | None = Field(None, description="an object; only together with stream")
    service_tier: Tier | None = Field(
        None,
        description="a string; auto, default, flex and scale are standard, priority and fast are fast",
    )
    user: str | None = Field(None, description="a string; ignored")


class PredictionPart(Body):
    type: Literal["text"]
    text: str


class Prediction(Body):
    """Text that the output is expected to resemble; guesses taken from it are verified several at a time."""

    type: Literal["content"]
    content: str | list[PredictionPart]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class ChatRequest(GenerationBody):
    messages: Annotated[list[Message], Field(min_length=1, fail_fast=True)] = Field(
        description="a list of at least one message"
    )
    max_tokens: Positive | None = Field(
        None, description="an integer of at least 1; lowered to the room that the prompt leaves, which is also the default"
    )
    max_completion_tokens: Positive | None = Field(
        None, description="an integer of at least 1; the newer name of max_tokens, wins if both are given"
    )
    logprobs: bool | None = Field(None, description="true or false")
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None, description="an integer from 0 to 20; only together with logprobs"
    )
    tools: list[Tool] | None = Field(None, description="a list of tools")
    tool_choice: ChatToolChoice = Field(None, description='"none", "auto", "required", or an object that names a function')
    parallel_tool_calls: bool | None = Field(None, description="true or false; ignored")
    prediction: Prediction | None = Field(
        None,
        description='an object such as {"type": "content", "content": "..."}; its content a string or a list of text parts',
    )


class CompletionRequest(GenerationBody):
    prompt: Annotated[str | Texts | Ids | list[Ids] | None, PROMPT] = Field(
        None,
        description="a string, a list of strings, a list of token ids or a list of such lists; "
        "absent or empty text stands for the start of a document",
    )
    max_tokens: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="an integer of at least 1, with echo at least 0; prompt and max_tokens must fit the context, "
        "the default is 16",
    )
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = Field(None, description="an integer from 0 to 5")
    echo: bool | None = Field(None, description="true or false; true puts the prompt before the text")
    suffix: Annotated[str | None, ONLY_NULL] = Field(None, description="null; text to insert before is not supported")
    best_of: Annotated[int, Field(ge=1)] | None = Field(None, description="1 or the same as n")
