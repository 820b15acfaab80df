"""One choice of an answer as it grows: blocks of text and calls of tools."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from headway.runtime.api import Delta, TokenLogprob, Usage

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(slots=True)
class Block:
    """A stretch of the output. pieces: its text, or a call's arguments as JSON text."""

    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class CallBlock(Block):
    """index: which of the choice's calls it is, from 0. key: random, for an id in the dialect's form."""

    name: str = ""
    index: int = 0
    key: str = field(default_factory=lambda: uuid.uuid4().hex[:24])

    @property
    def complete(self) -> bool:
        """Whether the arguments are a JSON object."""
        try:
            return isinstance(json.loads(self.text), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(slots=True)
class Output:
    """index: which choice it is. cached_tokens: of the prompt, found in the prefix cache. prompt_logprobs: of its tokens but
    the first, if they were asked for. reason, stop_string and usage are set by its last delta."""

    index: int
    cached_tokens: int = 0
    prompt_logprobs: Sequence[TokenLogprob] = ()
    blocks: list[Block] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    reason: Finish | None = None
    stop_string: str | None = None
    usage: Usage | None = None

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if not isinstance(block, CallBlock))

    @property
    def calls(self) -> list[CallBlock]:
        return [block for block in self.blocks if isinstance(block, CallBlock)]

    def end(self, delta: Delta) -> None:
        """`delta`: the last one. A client acts on "tool_calls", so it is said only if every call is there to its end."""
        assert delta.usage is not None and delta.finish_reason in ("stop", "length"), "a last delta that is no failure"
        calls = self.calls
        self.reason = delta.finish_reason
        self.stop_string, self.usage = delta.stop_string, delta.usage
        if self.reason == "stop" and self.stop_string is None and calls and all(call.complete for call in calls):
            self.reason = "tool_calls"
