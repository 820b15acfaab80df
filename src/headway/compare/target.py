"""What a comparison asks of whatever it compares: one question in, one answer out, whatever API is behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headway.compare.record import RequestRecord


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, in the words of OpenAI's Chat Completions; a target words it anew for its own API.

    messages: with roles system, user, assistant (whose `tool_calls` name what it called) and tool (with `tool_call_id`).
    tools: `{"type": "function", "function": {"name", "description", "parameters"}}` each. tool_choice: "auto", "required",
    "none"; None = the API's default. schema: the answer must be JSON of this schema, where the API can hold it to that.
    ignore_eos: go on past the end of the answer, so that it has max_tokens tokens, where the API can do that.
    """

    messages: Sequence[Mapping[str, Any]]
    max_tokens: int
    temperature: float = 0.0
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | None = None
    schema: Mapping[str, Any] | None = None
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool as it was answered. arguments: the text that should be JSON, unread: reading it is part of the check."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Answer:
    """record: its times, token counts and outcome; a failure of the API (not of the model) is its `outcome` and `reason`, and
    must never be counted as a wrong answer without saying so. text: what was said; calls: in order."""

    record: RequestRecord
    text: str = ""
    calls: list[Call] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars (or whatever currency the user's prices are in) for a million tokens. cached: of input tokens read from a
    cache; None = as input."""

    input: float
    output: float
    cached: float | None = None


class Target(Protocol):
    """One column of a comparison: a model at an endpoint, in one mode."""

    @property
    def label(self) -> str:
        """What reports call it: "fast", "anthropic:claude-opus-5-5@fast"."""

    @property
    def price(self) -> Price | None:
        """None if nobody said."""

    async def ask(self, ask: Ask) -> Answer:
        """Never raises for what the endpoint or the network does: that is the record's outcome and reason."""
