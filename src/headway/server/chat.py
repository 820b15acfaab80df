"""POST /v1/chat/completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import Delta, GenerateRequest, TokenLogprob
from headway.runtime.served import ServedModel
from headway.server.body import show
from headway.server.dialect import Envelope, Output
from headway.server.logprobs import chat_logprobs
from headway.server.modes import Speed
from headway.server.params import check_min_tokens, check_stream_options, constraint_of, sampling_params, stop_strings
from headway.server.prompt import check_room, encode, encode_start
from headway.server.schemas import ChatRequest
from headway.server.sse import ChunkWriter
from headway.server.tally import Tally

Json = dict[str, Any]


def check(ask: ChatRequest) -> None:
    """Refuses, with a 400 that names the field, what no type can refuse and what isn't supported yet."""
    check_stream_options(ask)
    if ask.top_logprobs is not None and not ask.logprobs:
        raise RequestError(400, "'top_logprobs' is only allowed when 'logprobs' is true.", param="top_logprobs")
    if ask.tool_choice not in (None, "none", "auto"):
        message = f"'tool_choice' {show(ask.tool_choice)} is not supported yet, only none and auto."
        raise RequestError(400, message, param="tool_choice")
    for index, turn in enumerate(ask.messages):
        if turn.content is None and turn.role != "assistant":
            path = f"messages[{index}].content"
            raise RequestError(400, f"'{path}' must be a string or a list of text parts, not null.", param=path)


async def requests(served: ServedModel, ask: ChatRequest, answer_id: str) -> list[GenerateRequest]:
    """One per choice, at standard mode until the speed is known. max_tokens is lowered to the room that the prompt leaves."""
    ids = await encode(served, _render(served, ask), "messages")
    room = check_room(served, ids, "messages")
    wanted = ask.max_completion_tokens if ask.max_completion_tokens is not None else ask.max_tokens
    max_tokens = room if wanted is None else min(wanted, room)
    check_min_tokens(ask, max_tokens)
    logprobs = (ask.top_logprobs or 0) if ask.logprobs else None
    constraint = await constraint_of(ask, served.grammars)
    prediction = tuple(await encode_start(served, ask.prediction.text)) if ask.prediction is not None else ()
    return [
        GenerateRequest(
            id=f"{answer_id}-{choice}",
            prompt=ids,
            max_tokens=max_tokens,
            mode=ModeName.STANDARD,
            sampling=sampling_params(ask, choice, served.info.vocab_size, logprobs),
            stop=stop_strings(ask),
            ignore_eos=bool(ask.ignore_eos),
            min_tokens=ask.min_tokens or 0,
            prediction=prediction,
            constraint=constraint,
        )
        for choice in range(ask.n or 1)
    ]


def _render(served: ServedModel, ask: ChatRequest) -> str:
    if served.template is None:
        raise RequestError(400, f"{served.id} has no chat template; use /v1/completions, or serve it with --chat-template.")
    messages = [message.model_dump(exclude_unset=True) for message in ask.messages]
    for message in messages:
        if message["role"] == "function":  # the name that tool results had before there were tools
            message["role"] = "tool"
    tools = [tool.model_dump(exclude_unset=True) for tool in ask.tools or ()]
    return served.template.render(messages, tools=tools or None)


class ChatDialect:
    def __init__(self, envelope: Envelope, ask: ChatRequest, token_bytes: Sequence[bytes], speed: Speed) -> None:
        self._envelope = envelope
        self._mode = speed.mode
        self._token_bytes = token_bytes
        self._wants_logprobs = bool(ask.logprobs)
        include_usage = bool(ask.stream_options and ask.stream_options.include_usage)
        describe = self._describe if self._wants_logprobs else None
        self._chunks = ChunkWriter(envelope, "chat.completion.chunk", '"delta":{"content":', "}", describe, include_usage)

    def _describe(self, choice: int, logprobs: Sequence[TokenLogprob]) -> Json:
        return chat_logprobs(logprobs, self._token_bytes)

    def begin(self, choice: int) -> bytes:
        delta = {"role": "assistant", "content": ""}
        return self._chunks.choice({"index": choice, "delta": delta, "logprobs": None, "finish_reason": None})

    def piece(self, choice: int, text: str, logprobs: Sequence[TokenLogprob]) -> bytes:
        return self._chunks.piece(choice, text, logprobs)

    def finish(self, choice: int, delta: Delta) -> bytes:
        value = {"index": choice, "delta": {}, "logprobs": None, "finish_reason": delta.finish_reason}
        return self._chunks.finish(value, self._mode, delta)

    def usage(self, tally: Tally) -> bytes:
        return self._chunks.usage(tally)

    def whole(self, outputs: Sequence[Output], tally: Tally) -> Json:
        choices = [self._choice(index, output) for index, output in enumerate(outputs)]
        extra = {"usage": tally.usage(), "time_info": tally.time_info(), "headway": tally.headway()}
        return {**self._envelope.fields("chat.completion"), "choices": choices, **extra}

    def _choice(self, index: int, output: Output) -> Json:
        return {
            "index": index,
            "message": {"role": "assistant", "content": "".join(output.text), "refusal": None},
            "logprobs": chat_logprobs(output.logprobs, self._token_bytes) if self._wants_logprobs else None,
            "finish_reason": output.finish_reason,
        }
