"""What is known of one request after it was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from headway.modes import ModeName

Outcome = Literal["success", "failure", "cut"]


@dataclass(frozen=True, slots=True)
class ServedBy:
    """The `headway` object of a response: the mode that was served, its pace in tokens/s, the share of tokens that were
    delivered by their deadline, and the device seconds charged. None where the server doesn't say."""

    mode: str | None
    pace: float | None
    attainment: float | None
    engine_seconds: float | None

    @classmethod
    def of(cls, headway: dict[str, Any]) -> ServedBy:
        return cls(*(headway.get(name) for name in ("mode", "pace", "attainment", "engine_seconds")))


@dataclass(slots=True)
class RequestRecord:
    """Times are seconds of one monotonic clock.

    Set before sending: mode (the one asked for), intended (when the load wanted it sent; latencies count from here, so that
    a late send doesn't hide a wait) and started (when it was sent).
    Set while it streams: status, chunk_times (one per chunk with content), first_chunk_tokens (None unless the server lists
    tokens), text and tokens (only if the request says so).
    Set at the end: finished, outcome, reason of a failure, and what the server reported. output_tokens comes from `usage`
    alone: chunks carry any number of tokens, so without usage the count stays unknown (None). cached_tokens: of the prompt,
    read from a cache.
    Of a request that was refused and sent again (see targets/endpoint.py): retries, how often; started is its last try's, so
    `started - intended` holds what it waited. retry_after: the seconds that the last refusal asked for; gives_up: it said that
    trying again is of no use.
    outcome is "cut" until the end: a request that the load generator gave up is neither a success nor an error.
    """

    mode: ModeName
    intended: float
    started: float
    status: int | None = None
    chunk_times: list[float] = field(default_factory=list)
    first_chunk_tokens: int | None = None
    text: str = ""
    tokens: list[str] = field(default_factory=list)
    finished: float | None = None
    outcome: Outcome = "cut"
    reason: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    retries: int = 0
    retry_after: float | None = None
    gives_up: bool = False
    service_tier: str | None = None
    served_by: ServedBy | None = None
    time_info: dict[str, float] | None = None

    def fail(self, reason: str) -> None:
        self.outcome = "failure"
        self.reason = reason

    def begin_again(self, started: float) -> None:
        """It was refused and is sent once more: forget the refusal, not when it was intended."""
        self.started = started
        self.status = self.reason = self.finished = self.retry_after = None
        self.outcome = "cut"

    @property
    def succeeded(self) -> bool:
        return self.outcome == "success"

    @property
    def ttft(self) -> float | None:
        """Time to first token: seconds from the intended start to the first chunk with content."""
        return self.chunk_times[0] - self.intended if self.chunk_times else None

    @property
    def e2e(self) -> float | None:
        """End to end: seconds from the intended start to the last chunk with content."""
        return self.chunk_times[-1] - self.intended if self.chunk_times else None

    @property
    def tpot(self) -> float | None:
        """Time per output token in seconds: (e2e - TTFT) / (output tokens - 1). None for one token, an unknown count, or if all
        came in one chunk, which shows no time."""
        if self.output_tokens is None or self.output_tokens < 2 or len(self.chunk_times) < 2:
            return None
        return (self.chunk_times[-1] - self.chunk_times[0]) / (self.output_tokens - 1)

    @property
    def tokens_per_second(self) -> float | None:
        """The user's rate from the first token on: the tokens after the first chunk over the seconds after it. A first chunk
        of unknown size counts as one token. None for one chunk or an unknown count."""
        if self.output_tokens is None or len(self.chunk_times) < 2:
            return None
        seconds = self.chunk_times[-1] - self.chunk_times[0]
        tokens = self.output_tokens - (self.first_chunk_tokens or 1)
        return tokens / seconds if seconds > 0 and tokens > 0 else None

    @property
    def middle(self) -> float | None:
        """Half way between the first and the last chunk with content."""
        return (self.chunk_times[0] + self.chunk_times[-1]) / 2 if self.chunk_times else None

    @property
    def served_fast(self) -> bool:
        """Whether the server says that it served the fast mode (by its `headway` object, else by the tier it echoes)."""
        if self.served_by is not None and self.served_by.mode is not None:
            return self.served_by.mode == ModeName.FAST
        return self.service_tier in ("priority", "fast")
