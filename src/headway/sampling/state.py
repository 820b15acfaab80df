"""What sampling remembers of one request."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.grammar.matcher import Matcher
from headway.sampling.counts import TokenCounts
from headway.sampling.params import SamplingParams

_CHUNK = 64
_NONE = np.array([], np.intp)


class SamplingState:
    """The random numbers of one request and the tokens that its penalties count.

    Output token k always gets the k-th number of the request's own stream, so a seed gives the same text whatever else is in
    the batch. banned: ids that can't be chosen until `min_tokens` tokens are out (end-of-sequence tokens).
    bias_ids, bias: the logit bias as two arrays of the same length. matcher: says which tokens a constraint allows.
    """

    def __init__(
        self,
        params: SamplingParams,
        prompt: Sequence[int],
        *,
        banned: Sequence[int] = (),
        min_tokens: int = 0,
        matcher: Matcher | None = None,
    ) -> None:
        self.params = params
        self.matcher = matcher
        self.num_output = 0
        self.seen = TokenCounts(prompt if params.repetition_penalty != 1.0 else ())
        self.bias_ids = np.array(list(params.logit_bias), np.intp)
        self.bias = np.array(list(params.logit_bias.values()), np.float32)
        self._banned = np.array(banned, np.intp)
        self._min_tokens = min_tokens
        self._random: np.random.Generator | None = None  # making it takes 0.1 ms, and greedy requests draw nothing
        self._uniforms: list[float] = []

    @property
    def counts_tokens(self) -> bool:
        p = self.params
        return p.presence_penalty != 0.0 or p.frequency_penalty != 0.0 or p.repetition_penalty != 1.0

    @property
    def adjusts(self) -> bool:
        """Whether the logits have to be changed before a token is chosen."""
        return self.counts_tokens or len(self.bias_ids) > 0 or len(self.banned) > 0

    @property
    def banned(self) -> NDArray[np.intp]:
        return self._banned if self.num_output < self._min_tokens else _NONE

    @property
    def ended(self) -> bool:
        """Whether the constraint lets nothing follow."""
        return self.matcher is not None and self.matcher.finished

    def uniform(self) -> float:
        """The random number in [0, 1) of the next output token."""
        if self._random is None:
            seed = secrets.randbits(64) if self.params.seed is None else self.params.seed % 2**64
            self._random = np.random.Generator(np.random.Philox(key=seed))
        while self.num_output >= len(self._uniforms):
            self._uniforms.extend(self._random.random(_CHUNK).tolist())
        return self._uniforms[self.num_output]

    def observe(self, token: int) -> None:
        """Take note of a chosen token."""
        self.num_output += 1
        if self.matcher is not None:
            self.matcher.accept(token)
        if self.counts_tokens:
            self.seen.add(token)
