"""The state of one request inside the scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.modes import ModeName
from headway.scheduler.foreseen import Foreseen, expected
from headway.scheduler.guided import Guide
from headway.scheduler.lookup import DraftSource, Lookup

LEARN = 0.1
"""Weight of the newest step in `tokens_per_step`."""
MAX_SCORED = 32
"""Tokens of a prompt that is to be scored, in one step: each costs a row of logits (200 KB for a vocabulary of 50,000)."""
LOOKED_AT, GOOD = 3, 1.0
"""Drafts that were looked up are good if so many of so many should prove right."""


@dataclass(slots=True, eq=False)
class Request:
    """One generation in the engine loop.

    There is no prefill phase and no decode phase: a request has `tokens` (prompt and output so far) of which the first
    `num_computed` have their KV in `blocks`; every step lets chosen requests catch up by some tokens, and one that
    catches up entirely yields its next token.

    Set by the caller: id, mode, pace (tokens/s), arrival (seconds on the scheduler's clock), ttft_deadline (same clock; aimed
    at, or promised if promises_ttft), key (whose request it is: those of different keys are served evenly),
    tokens (the prompt), max_tokens, stop_tokens (ids that end it), min_tokens, lookup (knows the prediction, if any),
    guide (the grammar that the output is held to; the request ends when nothing may follow), scored (whether the likelihood of
    each token of the prompt is wanted, as for `echo` with `logprobs`).
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
    scored: bool = False

    num_prompt: int = field(init=False)
    num_computed: int = 0
    num_cached: int = 0
    num_scored: int = 0
    """Leading tokens of a scored prompt after which the next one's likelihood is known: only these may come out of the prefix
    cache."""
    blocks: list[int] = field(default_factory=list)
    num_sealed: int = 0
    """How many leading blocks are already known to the prefix cache."""
    prefix_key: int = 0
    """The prefix cache's key of the last sealed block."""

    started_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    num_on_time: int = 0
    held: bool = False
    """The first token waits for the second, and so does the clock: then there is a token of lead from the start."""
    drafts: list[int] = field(default_factory=list)
    """Guesses for the next tokens, made before each step; compose decides how many of them are worth verifying."""
    foreseen: Foreseen | None = None
    """What the engine's draft head has guessed, for the position that it did so."""
    uses_foreseen: bool = False
    """Whether `drafts` are the head's."""
    last_source: DraftSource = DraftSource.OWN_TEXT
    """Of the drafts that were verified last."""
    _looked_up: list[int] = field(default_factory=list)
    _looked_at: int = -1
    """How long the text was when drafts were looked up last."""
    tokens_per_step: float = 1.0
    """Tokens that a step it rides in brings, of late."""
    drafted: Counter[DraftSource] = field(default_factory=Counter)
    accepted: Counter[DraftSource] = field(default_factory=Counter)
    """Drafts that were verified, and those of them that became output."""
    level: float = 0.0
    """The others' service on arrival."""
    service: float = 0.0
    """Seconds of service at the own pace: tokens received / pace, started at `level`."""
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
    def reach(self) -> int:
        """Pending tokens that one step may take."""
        return min(self.pending, MAX_SCORED) if self.to_score else self.pending

    @property
    def to_score(self) -> int:
        """Tokens of the prompt after which the next one's likelihood is yet to be found."""
        return self.num_prompt - 1 - self.num_scored if self.scored else 0

    @property
    def due(self) -> float:
        """When the next token is due: the TTFT deadline, then first token + k / pace for token k."""
        if self.first_token_at is None:
            return self.ttft_deadline
        return self.first_token_at + self.num_output / self.pace

    @property
    def prompt_order(self) -> tuple[bool, float]:
        """Whose prompt is computed first. By due time alone, a fast request would wait behind all standard ones that are late
        already, which under overload are all there are."""
        return self.mode is ModeName.STANDARD and not self.promises_ttft, self.due

    def credit(self, now: float) -> float:
        """Tokens delivered so far minus pace x time since the first one; negative = late."""
        if self.first_token_at is None:
            return 0.0
        return self.num_output - 1 - self.pace * (now - self.first_token_at)

    def receive(self, token: int, now: float) -> None:
        """Take a sampled token, delivered at `now`."""
        output = len(self.tokens) - self.num_prompt
        if self.first_token_at is None:
            self.first_token_at = now
        elif self.held:
            self.held, self.first_token_at = False, now
            self.num_on_time += 1
        elif now <= self.first_token_at + output / self.pace:  # that is, by `due`
            self.num_on_time += 1
        self.tokens.append(token)
        self.last_token_at = now
        self.service = self.level + (output + 1) / self.pace

    def guess(self) -> None:
        """Renew `drafts`: as many as the output may take before its last token, none while there is a prompt to compute. They
        are looked up, or the draft head's if these promise more."""
        self.uses_foreseen = False
        if self.pending != 1 or self.first_token_at is None:
            self.lookup.enter(self.tokens, self.num_computed)
            self.drafts, self._looked_up, self._looked_at = [], [], -1
            return
        self.drafts = self._look_up()
        if self.foreseen is not None and self.foreseen.position == len(self.tokens):
            foreseen = self.foreseen.tokens[: self._room]
            if self.guide is not None:
                foreseen = foreseen[: self.guide.fitting(foreseen)]
            ahead = self.foreseen.survivals[: len(foreseen)]
            known = [self.lookup.survival(k) for k in range(min(len(self.drafts), len(ahead)))]
            self.uses_foreseen = expected(ahead) > expected(known)
            if self.uses_foreseen:
                self.drafts = foreseen

    def knows_on(self) -> bool:
        """Whether drafts that can be looked up are so good that it isn't worth asking for others."""
        found = self._look_up()[:LOOKED_AT]
        return expected([self.lookup.survival(k) for k in range(len(found))]) >= GOOD

    @property
    def _room(self) -> int:
        """Drafts that the output may take before its last token."""
        return self.max_tokens - self.num_output - 1

    def _look_up(self) -> list[int]:
        """Once for each length of the text: a row that doesn't ride has nothing new to look for."""
        if self._looked_at != len(self.tokens):
            self._looked_up = self.lookup.propose(self.tokens, self.num_output, self._room)
            self._looked_at = len(self.tokens)
        return self._looked_up

    def note_drafts(self, verified: int, right: int) -> None:
        """Count the drafts of a step, if it had any."""
        if not verified:
            return
        foreseen = self.foreseen if self.uses_foreseen else None
        self.last_source = foreseen.source if foreseen is not None else self.lookup.source
        self.drafted[self.last_source] += verified
        self.accepted[self.last_source] += right

    def survival(self, k: int) -> float:
        """How likely the k-th draft is right, if those before it are."""
        return self.foreseen.survivals[k] if self.foreseen is not None and self.uses_foreseen else self.lookup.survival(k)

    def learn(self, received: Sequence[int]) -> None:
        """See which of the guesses came true, and how many tokens the step has brought."""
        if self._looked_up:
            self.lookup.learn(self._looked_up, received)
        if self.foreseen is not None and self.foreseen.position == len(self.tokens):
            self.foreseen.learn(received)
        if received and self.first_token_at is not None:
            self.tokens_per_step += LEARN * (len(received) - self.tokens_per_step)

    @property
    def attainment(self) -> float:
        """Share of the tokens after the first that came by their deadline; 1.0 if there were none."""
        return self.num_on_time / (self.num_output - 1) if self.num_output > 1 else 1.0

    def is_last(self, token: int) -> bool:
        """Whether `token`, just received, ends the request by the model's own word."""
        return token in self.stop_tokens and self.num_output > self.min_tokens
