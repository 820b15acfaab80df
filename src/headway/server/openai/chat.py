"""POST /v1/chat/completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.errors import RequestError
from headway.runtime.api import GenerateRequest, TokenLogprob
from headway.runtime.served import ServedModel
from headway.server.constraint import ForcedCall, check_together, constraint
from headway.server.modes import Speed
from headway.server.openai.chunks import ChunkRenderer, Envelope
from headway.server.openai.logprobs import chat_logprobs
from headway.server.openai.params import (
    check_min_tokens,
    check_stream_options,
    forced_call,
    form_of,
    sampling_params,
    stop_strings,
)
from headway.server.openai.schemas import ChatRequest
from headway.server.output import CallBlock, Output
from headway.server.prompt import check_room, encode, encode_start, output_limit, template_of
from headway.server.render import Json
from headway.text.parts import Reader


def check(ask: ChatRequest) -> None:
    """Refuses, with a 400 that names the field, what no type can refuse and what isn't supported yet."""
    check_stream_options(ask)
    if ask.top_logprobs is not None and not ask.logprobs:
        raise RequestError(400, "'top_logprobs' is only allowed when 'logprobs' is true.", param="top_logprobs")
    check_together(_forced(ask), form_of(ask))
    for index, turn in enumerate(ask.messages):
        if turn.content is None and turn.role != "assistant":
            path = f"messages[{index}].content"
            raise RequestError(400, f"'{path}' must be a string or a list of text parts, not null.", param=path)


async def requests(
    served: ServedModel, ask: ChatRequest, answer_id: str, default_max_tokens: int | None
) -> list[GenerateRequest]:
    """One per choice, at the base mode until the speed is known. max_tokens is lowered to the room that the prompt leaves."""
    ids = await encode(served, _render(served, ask), "messages")
    room = check_room(served, ids, "messages")
    wanted = ask.max_completion_tokens if ask.max_completion_tokens is not None else ask.max_tokens
    max_tokens = output_limit(wanted, default_max_tokens, room)
    check_min_tokens(ask, max_tokens)
    logprobs = (ask.top_logprobs or 0) if ask.logprobs else None
    held_to = await constraint(served, form_of(ask), _forced(ask), _tools(ask))
    prediction = tuple(await encode_start(served, ask.prediction.text)) if ask.prediction is not None else ()
    return [
        GenerateRequest(
            id=f"{answer_id}-{choice}",
            prompt=ids,
            max_tokens=max_tokens,
            mode=served.modes.base.name,
            sampling=sampling_params(ask, choice, served.info.vocab_size, logprobs),
            stop=stop_strings(ask),
            ignore_eos=bool(ask.ignore_eos),
            min_tokens=ask.min_tokens or 0,
            prediction=prediction,
            constraint=held_to,
        )
        for choice in range(ask.n or 1)
    ]


def _forced(ask: ChatRequest) -> ForcedCall | None:
    def name_in(choice: Json) -> Any:
        function = choice.get("function")
        return function.get("name") if isinstance(function, dict) else None

    example = '{"type": "function", "function": {"name": ...}}'
    return forced_call(ask.tool_choice, name_in, example, ask.parallel_tool_calls)


def _render(served: ServedModel, ask: ChatRequest) -> str:
    messages = [message.model_dump(exclude_unset=True) for message in ask.messages]
    for message in messages:
        if message["role"] == "function":  # the name that tool results had before there were tools
            message["role"] = "tool"
    return template_of(served).render(messages, tools=_tools(ask) or None)


def _tools(ask: ChatRequest) -> list[Json]:
    return [tool.model_dump(exclude_unset=True) for tool in ask.tools or ()]


def new_reader(served: ServedModel, ask: ChatRequest) -> Reader:
    """For one choice. With `tool_choice` none, what looks like a call is text."""
    tools = [] if ask.tool_choice == "none" else _tools(ask)
    return template_of(served).reader(tools, parallel=ask.parallel_tool_calls is not False)


class ChatRenderer(ChunkRenderer):
    whole_kind, chunk_kind, nothing = "chat.completion", "chat.completion.chunk", {"delta": {}}

    def __init__(self, envelope: Envelope, ask: ChatRequest, served: ServedModel, speed: Speed) -> None:
        super().__init__(envelope, ask, speed, lambda: new_reader(served, ask))
        self._token_bytes = served.tokenizer.token_bytes
        self._wants_logprobs = bool(ask.logprobs)

    def begin(self, output: Output) -> list[Json]:
        return [self.chunk(output, {"delta": {"role": "assistant", "content": ""}}, None)]

    def open(self, output: Output) -> list[Json]:
        call = output.blocks[-1]
        if not isinstance(call, CallBlock):
            return []
        return [self.chunk(output, {"delta": {"tool_calls": [{"index": call.index, **_call(call, "")}]}}, None)]

    def increment(self, output: Output, text: str) -> Json:
        call = output.blocks[-1] if output.blocks else None
        if isinstance(call, CallBlock):
            return {"delta": {"tool_calls": [{"index": call.index, "function": {"arguments": text}}]}}
        return {"delta": {"content": text}}

    def content(self, output: Output) -> Json:
        message: Json = {"role": "assistant", "content": output.text, "refusal": None}
        if output.calls:
            message["content"] = output.text or None
            message["tool_calls"] = [_call(call, call.text) for call in output.calls]
        return {"message": message, "logprobs": self.describe(output, output.logprobs)}

    def describe(self, output: Output, logprobs: Sequence[TokenLogprob]) -> Any:
        return chat_logprobs(logprobs, self._token_bytes) if self._wants_logprobs else None


def _call(call: CallBlock, arguments: str) -> Json:
    return {"id": f"call_{call.key}", "type": "function", "function": {"name": call.name, "arguments": arguments}}
