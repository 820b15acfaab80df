"""What goes into the engine loop and what comes out of it: the seam between the server and everything below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headway.grammar.compiler import Grammar
from headway.modes import ModeName
from headway.sampling.params import SamplingParams
from headway.scheduler.lookup import DraftSource

FinishReason = Literal["stop", "length", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One generation, dialect-free.

    prompt: token ids, not empty. max_tokens: output cap (the loop lowers it to the room that the context leaves); 0: only the
    prompt is computed.
    stop: strings that end the output and are not part of it. ignore_eos: go on past end-of-sequence tokens.
    min_tokens: end-of-sequence tokens and stop strings are not heeded before so many output tokens.
    pace: tokens per second asked for explicitly; None = the mode's. ttft: seconds in which the first token is promised; None =
    only aimed at. prediction: token ids that the output is expected to resemble. key: whose request it is; those of different
    keys are served evenly. constraint: what the output is held to; it ends when that is complete, and ignore_eos has no say.
    prompt_logprobs: how many of the likeliest tokens to name at each place of the prompt; None: it is not scored.
    """

    id: str
    prompt: list[int]
    max_tokens: int
    mode: ModeName
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    pace: float | None = None
    ttft: float | None = None
    prediction: tuple[int, ...] = ()
    key: str = ""
    constraint: Grammar | None = None
    prompt_logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token, sampled or of a prompt: its id, natural-log probability (of the unmodified distribution at temperature 1), and
    the likeliest alternatives as (id, logprob), best first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. queue: arrival to first computation; prompt: from there to the first token; completion: first to last token."""

    queue: float
    prompt: float
    completion: float
    total: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request used. cached_tokens: prompt tokens found in the prefix cache (part of prompt_tokens).
    engine_seconds: the request's share of device time by the charging rule. attainment: share of tokens after the
    first that were delivered by their pace deadline (1.0 if there were none). drafted, accepted: guesses that were verified,
    and those of them that became output, by where they came from. predicted_rejected: guesses from the caller's prediction
    that proved wrong."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    engine_seconds: float
    attainment: float
    pace: float
    drafted: Mapping[DraftSource, int] = field(default_factory=dict)
    accepted: Mapping[DraftSource, int] = field(default_factory=dict)
    predicted_rejected: int = 0

    @property
    def drafted_tokens(self) -> int:
        return sum(self.drafted.values())

    @property
    def accepted_tokens(self) -> int:
        return sum(self.accepted.values())

    @property
    def predicted_accepted(self) -> int:
        return self.accepted.get(DraftSource.PREDICTION, 0)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of output. `text` never splits a character and never contains a stop string or what may still become one.
    `num_tokens` counts the tokens sampled since the last delta (their text may still be held back).
    `cached_tokens` is that of Usage, known from the first delta on.
    `prompt_logprobs`: with the first delta, for each token of the prompt but its first; empty if they were not asked for.
    The last delta of a request has `finish_reason`, `usage` and `timing` set; no delta follows it."""

    text: str
    num_tokens: int
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    stop_string: str | None = None
    error: str | None = None
    usage: Usage | None = None
    timing: Timing | None = None
    cached_tokens: int = 0
    prompt_logprobs: tuple[TokenLogprob, ...] = ()
