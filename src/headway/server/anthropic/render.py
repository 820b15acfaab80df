"""A message in Anthropic's form: blocks of text and of tool use, streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import from_json

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import Delta, TokenLogprob
from headway.server.anthropic.errors import error_body
from headway.server.output import Block, CallBlock, Output
from headway.server.render import Json, Renderer
from headway.text.parts import Reader

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
PING: Json = {"type": "ping"}


class MessageRenderer(Renderer):
    """answer_id, request_id: "msg_..." and "req_...". model: as it was asked for. num_prompt: tokens of the prompt.
    fills_context: whether a length that is reached is the context's rather than the client's."""

    def __init__(
        self,
        answer_id: str,
        request_id: str,
        model: str,
        mode: ModeName,
        num_prompt: int,
        fills_context: bool,
        new_reader: Callable[[], Reader],
    ) -> None:
        super().__init__(mode, 1, new_reader)
        self._request_id = request_id
        self._mode = mode
        self._num_prompt = num_prompt
        self._fills_context = fills_context
        self._message: Json = {"id": answer_id, "type": "message", "role": "assistant", "model": model}

    def begin(self, output: Output) -> list[Json]:
        nothing: Json = {"content": [], "stop_reason": None, "stop_sequence": None}
        message = {**self._message, **nothing, "usage": self._usage(output)}
        return [{"type": "message_start", "message": message}]

    def open(self, output: Output) -> list[Json]:
        block = output.blocks[-1]
        shown = {**_block(block), "input": {}} if isinstance(block, CallBlock) else {"type": "text", "text": ""}
        start = {"type": "content_block_start", "index": len(output.blocks) - 1, "content_block": shown}
        return [start, PING] if len(output.blocks) == 1 else [start]

    def piece(self, output: Output, text: str, logprobs: Sequence[TokenLogprob]) -> list[Json]:
        is_call = isinstance(output.blocks[-1], CallBlock)
        delta = {"type": "input_json_delta", "partial_json": text} if is_call else {"type": "text_delta", "text": text}
        return [{"type": "content_block_delta", "index": len(output.blocks) - 1, "delta": delta}]

    def close(self, output: Output) -> list[Json]:
        return [{"type": "content_block_stop", "index": len(output.blocks) - 1}]

    def finish(self, output: Output, delta: Delta) -> list[Json]:
        return [
            {"type": "message_delta", "delta": self._ending(output), "usage": self._usage(output), **self._more()},
            {"type": "message_stop"},
        ]

    def failure(self, error: RequestError) -> list[Json]:
        return [error_body(error, self._request_id)]

    def silence(self) -> list[Json]:
        return [PING]

    def whole(self) -> Json:
        (output,) = self.outputs
        content = [_block(block) for block in output.blocks]
        return {**self._message, "content": content, **self._ending(output), "usage": self._usage(output), **self._more()}

    def _ending(self, output: Output) -> Json:
        assert output.reason is not None, "the output is complete"
        reason = STOP_REASONS[output.reason]
        if output.stop_string is not None:
            reason = "stop_sequence"
        elif output.reason == "length" and self._fills_context:
            reason = "model_context_window_exceeded"
        return {"stop_reason": reason, "stop_sequence": output.stop_string}

    def _usage(self, output: Output) -> Json:
        """Prompt tokens that were found in the prefix cache count as read, all others as input: keeping them costs nothing
        here, so none counts as creation."""
        return {
            "input_tokens": self._num_prompt - output.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": output.cached_tokens,
            "output_tokens": output.usage.completion_tokens if output.usage is not None else 0,
            "service_tier": "standard",
            "speed": "fast" if self._mode is ModeName.FAST else "standard",
        }

    def _more(self) -> Json:
        return {"time_info": self.tally.time_info(), "headway": self.tally.headway()}


def _block(block: Block) -> Json:
    if not isinstance(block, CallBlock):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": f"toolu_{block.key}", "name": block.name, "input": _input(block)}


def _input(call: CallBlock) -> Any:
    """Of a call that was cut short, what is there: the same as SDKs make of its stream."""
    if call.complete:
        return json.loads(call.text)
    try:
        value = from_json(call.text or "{}", allow_partial=True)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
