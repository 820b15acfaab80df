"""How one request wants its tokens chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Already validated (the dialects do that); the neutral values are the defaults.

    temperature: 0 means greedy. top_p in (0, 1], 1 = off. top_k >= 0, 0 = off. min_p in [0, 1], 0 = off.
    seed: any integer in [-1, 2**63); None draws one from the system's randomness. 0 and -1 are seeds like any other.
    presence_penalty, frequency_penalty: subtracted from logits of tokens in the *output* so far (OpenAI's meaning).
    repetition_penalty: divides (or multiplies, if negative) logits of tokens in prompt or output; 1 = off.
    logit_bias: token id -> value added to its logit.
    logprobs: None = not wanted; n >= 0 = the chosen token's and the n likeliest ones'.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
