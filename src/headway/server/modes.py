"""The dialects' words for speed (a model id, `service_tier` or `speed`, a header) become a mode and a pace.

Rules, first match counts:
- the alias `MODEL-fast` asks for fast, whatever `service_tier` or `speed` says: it is the more deliberate of the two, since
  many clients always send `service_tier: "auto"`;
- OpenAI: `service_tier` priority and fast ask for fast; auto, default, flex and scale ask for standard;
- Anthropic: `speed` fast asks for fast, standard for standard; the beta header says nothing, nor does `service_tier`;
- the header `x-slo-tpot-ms` sets the pace; a request that didn't ask for fast becomes fast if that pace is above standard's;
- the header `x-slo-ttft-ms` asks for a promise of the first token, in either mode: kept, or the request is refused.

In OpenAI's dialect the answer's `service_tier` is the word that was asked for fast (priority if none was), and "default" for
standard; in Anthropic's `speed` is the mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headway.errors import RequestError
from headway.modes import ModeName, Modes
from headway.server.body import show

STANDARD_WORDS = ("auto", "default", "flex", "scale")
FAST_WORDS = ("priority", "fast")
SLOWEST_MS = 60_000
FAST_SUFFIX = "-fast"
PACE_HEADER = "x-slo-tpot-ms"
TTFT_HEADER = "x-slo-ttft-ms"


@dataclass(frozen=True, slots=True)
class Speed:
    """mode and explicit pace (tokens/s; None = the mode's), `tier`, the word that the answer echoes, and the seconds in which
    the first token is wanted (None = no promise). asked: the mode before a downgrade, if there was one."""

    mode: ModeName
    pace: float | None
    tier: str
    ttft: float | None = None
    asked: ModeName | None = None

    @property
    def requested(self) -> ModeName:
        return self.asked or self.mode

    @property
    def explicit(self) -> bool:
        """Figures were asked for: served slower, they would be a broken promise."""
        return self.pace is not None or self.ttft is not None

    def downgraded(self) -> Speed:
        return replace(self, mode=ModeName.STANDARD, tier="default", asked=self.mode)


def resolve_speed(
    model_id: str, modes: Modes, *, model: str, tier: str | None, tpot_ms: str | None, ttft_ms: str | None = None
) -> Speed:
    """`model`, `tier`, `tpot_ms` and `ttft_ms` as the client sent them. Raises RequestError 404 for an unknown model, 400
    for an unknown tier or a pace that is not on offer."""
    alias = is_alias(model_id, model)
    word = tier if tier is not None and tier in FAST_WORDS else "priority"
    return _resolve(modes, _reads_as_fast(tier) or alias, word, tpot_ms, ttft_ms)


def resolve_messages_speed(
    model_id: str, modes: Modes, *, model: str, speed: str | None, tpot_ms: str | None, ttft_ms: str | None = None
) -> Speed:
    """The same for Anthropic's dialect. `speed`: "standard" or "fast", None means standard."""
    return _resolve(modes, is_alias(model_id, model) or speed == ModeName.FAST, "priority", tpot_ms, ttft_ms)


def _resolve(modes: Modes, wants_fast: bool, word: str, tpot_ms: str | None, ttft_ms: str | None) -> Speed:
    pace = _explicit_pace(tpot_ms, modes) if tpot_ms is not None else None
    ttft = _milliseconds(TTFT_HEADER, ttft_ms) / 1000 if ttft_ms is not None else None
    if pace is not None and pace > modes.base.pace:
        wants_fast = True
    if not wants_fast:
        return Speed(ModeName.STANDARD, pace, "default", ttft)
    return Speed(ModeName.FAST, pace, word, ttft)


def is_alias(model_id: str, model: str) -> bool:
    """True for the fast alias of `model_id`, False for the id itself. Raises RequestError 404 for anything else."""
    if model == model_id:
        return False
    if model == model_id + FAST_SUFFIX:
        return True
    raise RequestError(
        404,
        f"The model {show(model)} does not exist. Available: {model_id}, {model_id}{FAST_SUFFIX}.",
        code="model_not_found",
        param="model",
    )


def _reads_as_fast(tier: str | None) -> bool:
    if tier is None or tier in STANDARD_WORDS:
        return False
    if tier in FAST_WORDS:
        return True
    words = ", ".join((*STANDARD_WORDS, *FAST_WORDS))
    problem = "is not available here" if tier == "ultrafast" else "is unknown"
    raise RequestError(400, f"'service_tier' {show(tier)} {problem}; it must be one of {words}.", param="service_tier")


def _explicit_pace(tpot_ms: str, modes: Modes) -> float:
    """1000 / milliseconds per token, in tokens per second."""
    pace = 1000 / _milliseconds(PACE_HEADER, tpot_ms)
    if pace > modes.highest:
        raise RequestError(
            400,
            f"{PACE_HEADER} {show(tpot_ms)} asks for {pace:.4g} tokens/s; the most this server promises is "
            f"{modes.highest:.4g} tokens/s ({1000 / modes.highest:.4g} ms per token).",
            param=PACE_HEADER,
        )
    return pace


def _milliseconds(header: str, value: str) -> float:
    try:
        milliseconds = float(value)
    except ValueError:
        milliseconds = math.nan
    if not (milliseconds / 1000 > 0 and milliseconds <= SLOWEST_MS):  # the smallest numbers are 0 in seconds
        wanted = f"a number of milliseconds above 0 and up to {SLOWEST_MS}"
        raise RequestError(400, f"The header {header} must be {wanted}, not {show(value)}.", param=header)
    return milliseconds
