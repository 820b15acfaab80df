"""What the chat and the completions endpoint write differently, behind one interface, and what they share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headway.runtime.api import Delta, TokenLogprob
from headway.server.tally import Tally

DONE = b"data: [DONE]\n\n"


@dataclass(slots=True)
class Output:
    """One whole choice."""

    text: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """The fields that every body and every chunk of one answer carries."""

    id: str
    created: int
    model: str
    service_tier: str
    system_fingerprint: str

    def fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "service_tier": self.service_tier,
            "system_fingerprint": self.system_fingerprint,
        }

    def opening(self, kind: str) -> str:
        """An event up to and including the bracket that opens its choices; serialised once per stream."""
        return f'data: {compact(self.fields(kind))[:-1]},"choices":['


class Dialect(Protocol):
    """Events of a stream as bytes, each ending in an empty line, and the body of an answer that isn't streamed."""

    def begin(self, choice: int) -> bytes:
        """What comes before a choice's first text."""

    def piece(self, choice: int, text: str, logprobs: Sequence[TokenLogprob]) -> bytes:
        """Text and the log probabilities of the tokens since the last piece."""

    def finish(self, choice: int, delta: Delta) -> bytes:
        """The chunk that carries the finish_reason of `delta`, with time_info and headway."""

    def usage(self, tally: Tally) -> bytes:
        """The usage chunk if it was asked for, else nothing."""

    def whole(self, outputs: Sequence[Output], tally: Tally) -> dict[str, Any]: ...


def compact(value: Any) -> str:
    """JSON in ASCII: no client's line splitter can take a character such as U+2028 for the end of an event."""
    return json.dumps(value, separators=(",", ":"))
