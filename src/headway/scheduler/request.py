"""The state of one request inside the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.modes import ModeName
from headway.scheduler.guided import Guide
from headway.scheduler.lookup import Lookup

LEARN = 0.1
"""Weight of the newest step in `tokens_per_step`."""


@dataclass(slots=True, eq=False)
class Request:
    """One generation in the engine loop.

    There is no prefill phase and no decode phase: a request has `tokens` (prompt and output so far) of which the first
    `num_computed` have their KV in `blocks`; every step lets chosen requests catch up by some tokens, and one that
    catches up entirely yields its next token.

    Set by the caller: id, mode, pace (tokens/s), arrival (seconds on the scheduler's clock), ttft_deadline (same clock; aimed
    at, or promised if promises_ttft), key (whose request it is: those of different keys are served evenly),
    tokens (the prompt), max_tokens, stop_tokens (ids that end it), min_tokens, lookup (knows the prediction, if any),
    guide (the grammar that the output is held to; the request ends when nothing may follow).
    Set by the scheduler: everything else.
    """

    id: str
    mode: ModeName
    pace: float
    arrival: float
    ttft_deadline: float
    tokens: list[int]
    max_tokens: int
    stop_tokens: frozenset[int] = frozenset()
    min_tokens: int = 0
    lookup: Lookup = field(default_factory=Lookup)
    key: str = ""
    promises_ttft: bool = False
    guide: Guide | None = None

    num_prompt: int = field(init=False)
    num_computed: int = 0
    num_cached: int = 0
    blocks: list[int] = field(default_factory=list)
    num_sealed: int = 0
    """How many leading blocks are already known to the prefix cache."""
    prefix_key: int = 0
    """The prefix cache's key of the last sealed block."""

    started_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    num_on_time: int = 0
    drafts: list[int] = field(default_factory=list)
    """Guesses for the next tokens, made before each step; compose decides how many of them are worth verifying."""
    tokens_per_step: float = 1.0
    """Tokens that a step it rides in brings, of late."""
    num_drafted: int = 0
    num_accepted: int = 0
    num_predicted_accepted: int = 0
    num_predicted_rejected: int = 0
    """Drafts from the caller's prediction that were verified: those that became output, and the others."""
    service: float = 0.0
    """Seconds of service at the own pace: tokens received / pace, started at the level of the others on arrival."""
    engine_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.num_prompt = len(self.tokens)

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.num_prompt

    @property
    def pending(self) -> int:
        """Tokens to compute until the next one can be sampled; 1 for a request that only decodes."""
        return len(self.tokens) - self.num_computed

    @property
    def due(self) -> float:
        """When the next token is due: the TTFT deadline, then first token + k / pace for token k."""
        if self.first_token_at is None:
            return self.ttft_deadline
        return self.first_token_at + self.num_output / self.pace

    def credit(self, now: float) -> float:
        """Tokens delivered so far minus pace x time since the first one; negative = late."""
        if self.first_token_at is None:
            return 0.0
        return self.num_output - 1 - self.pace * (now - self.first_token_at)

    def receive(self, token: int, now: float) -> None:
        """Take a sampled token, delivered at `now`."""
        if self.first_token_at is None:
            self.first_token_at = now
        elif now <= self.due:
            self.num_on_time += 1
        self.tokens.append(token)
        self.last_token_at = now
        self.service += 1.0 / self.pace

    def guess(self) -> None:
        """Renew `drafts`: as many as the output may take before its last token, none while there is a prompt to compute."""
        decodes = self.pending == 1 and self.first_token_at is not None
        most = self.max_tokens - self.num_output - 1
        self.drafts = self.lookup.propose(self.tokens, self.num_output, most) if decodes else []

    def survival(self, k: int) -> float:
        """How likely the k-th draft is right, if those before it are."""
        return self.lookup.survival(k)

    def learn(self, received: Sequence[int]) -> None:
        """See which of the drafts came true, and how many tokens the step has brought."""
        self.lookup.learn(self.drafts, received)
        if received and self.num_output:
            self.tokens_per_step += LEARN * (len(received) - self.tokens_per_step)

    @property
    def attainment(self) -> float:
        """Share of the tokens after the first that came by their deadline; 1.0 if there were none."""
        return self.num_on_time / (self.num_output - 1) if self.num_output > 1 else 1.0

    def is_last(self, token: int) -> bool:
        """Whether `token`, just received, ends the request by the model's own word."""
        return token in self.stop_tokens and self.num_output > self.min_tokens
