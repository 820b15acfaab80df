"""A request while it is in the loop: its scheduler's side, and the way its output takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.runtime.api import Timing, TokenLogprob, Usage
from headway.runtime.stream import Stream
from headway.sampling.state import SamplingState
from headway.scheduler.lookup import DraftSource
from headway.scheduler.request import Request
from headway.text.stream import TextStream


@dataclass(slots=True, eq=False)
class Live:
    """min_tokens: output tokens before which stop strings are not heeded. num_delivered: tokens whose text has been made.
    ended: its last delta is out. prompt_logprobs: how many of the likeliest tokens to name at each place of the prompt, None if
    it isn't scored; scores: of the prompt's tokens but the first, as far as they are known and haven't been sent.
    held: a first token that waits for the next one. silent: the token that comes after the prompt isn't wanted.
    """

    request: Request
    sampling: SamplingState
    text: TextStream
    min_tokens: int
    stream: Stream
    events: asyncio.AbstractEventLoop
    num_delivered: int = 0
    ended: bool = False
    prompt_logprobs: int | None = None
    scores: list[TokenLogprob] = field(default_factory=list)
    held: list[TokenLogprob] = field(default_factory=list)
    silent: bool = False

    @property
    def failure(self) -> str | None:
        """Why its constraint can't be kept, if it can't."""
        return self.sampling.matcher.failure if self.sampling.matcher is not None else None

    def take(self, tokens: Sequence[TokenLogprob]) -> tuple[str, int]:
        """Text of the tokens, and how many of them count: those behind a stop string are neither shown nor billed."""
        text = ""
        if self.silent:
            return text, 0
        for n, sampled in enumerate(tokens, start=1):
            self.num_delivered += 1
            text += self.text.push(sampled.token, heed_stops=self.num_delivered > self.min_tokens)
            if self.text.stopped is not None:
                return text, n
        return text, len(tokens)

    def take_scores(self) -> tuple[TokenLogprob, ...]:
        """Those of the prompt, once."""
        scores, self.scores = self.scores, []
        return tuple(scores)

    def usage(self) -> Usage:
        """A prompt of which nothing has been computed doesn't count."""
        request = self.request
        accepted = request.accepted.copy()
        # Drafts that were right, but behind a stop string, have not become output; they are of the last step.
        unread = accepted.total() - max(0, self.num_delivered - 1)
        if unread > 0:
            accepted[request.last_source] -= min(unread, accepted[request.last_source])
        return Usage(
            prompt_tokens=request.num_prompt if request.started_at is not None else 0,
            completion_tokens=self.num_delivered,
            cached_tokens=request.num_cached,
            engine_seconds=request.engine_seconds,
            attainment=request.attainment,
            pace=request.pace,
            drafted=request.drafted,
            accepted=accepted,
            predicted_rejected=request.drafted[DraftSource.PREDICTION] - request.accepted[DraftSource.PREDICTION],
        )

    def timing(self, now: float) -> Timing:
        """`now` stands in for what has not happened yet."""
        request = self.request
        started = request.started_at if request.started_at is not None else now
        first = request.first_token_at if request.first_token_at is not None else now
        last = request.last_token_at if request.last_token_at is not None else first
        return Timing(started - request.arrival, first - started, last - first, last - request.arrival)

    @property
    def ttft(self) -> float | None:
        """Seconds from arrival to the first token; None before it."""
        first = self.request.first_token_at
        return None if first is None else first - self.request.arrival
