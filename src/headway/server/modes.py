"""The dialects' words for speed (a model id, `service_tier` or `speed`, a header) become a mode and a pace.

Rules, first match counts:
- a model that has no fast mode, such as a spark, has one speed, and the answer's `service_tier` is "default": OpenAI's words
  for speed are accepted, for many clients always send one; Anthropic's `speed: "fast"` is refused, as its own API does it;
- the alias `MODEL-fast` asks for fast, whatever `service_tier` or `speed` says: it is the more deliberate of the two, since
  many clients always send `service_tier: "auto"`;
- OpenAI: `service_tier` priority and fast ask for fast; auto, default, flex and scale ask for standard;
- Anthropic: `speed` fast asks for fast, standard for standard; the beta header says nothing, nor does `service_tier`;
- the header `x-slo-tpot-ms` sets the pace; a request that didn't ask for fast becomes fast if that pace is above standard's;
- the header `x-slo-ttft-ms` asks for a promise of the first token, in any mode: kept, or the request is refused.

In OpenAI's dialect the answer's `service_tier` is the word that was asked for fast (priority if none was), and "default" for
standard; in Anthropic's `speed` is "fast" for fast and "standard" for all else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headway.errors import RequestError
from headway.modes import ModeName
from headway.server.body import show
from headway.server.models import Named

STANDARD_WORDS = ("auto", "default", "flex", "scale")
FAST_WORDS = ("priority", "fast")
SLOWEST_MS = 60_000
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


def resolve_speed(named: Named, *, tier: str | None, tpot_ms: str | None, ttft_ms: str | None = None) -> Speed:
    """`tier`, `tpot_ms` and `ttft_ms` as the client sent them. Raises RequestError 400 for an unknown tier or a pace that is
    not on offer."""
    word = tier if tier is not None and tier in FAST_WORDS else "priority"
    return _resolve(named, _reads_as_fast(tier), word, tpot_ms, ttft_ms)


def resolve_messages_speed(named: Named, *, speed: str | None, tpot_ms: str | None, ttft_ms: str | None = None) -> Speed:
    """The same for Anthropic's dialect. `speed`: "standard" or "fast", None means standard. Raises RequestError 400 also where
    fast is asked of a model that doesn't have it, in the words that clients know."""
    wants_fast = speed == ModeName.FAST
    if wants_fast and named.served.modes.fast is None:
        raise RequestError(400, f"'{named.name}' does not support the `speed` parameter.", param="speed")
    return _resolve(named, wants_fast, "priority", tpot_ms, ttft_ms)


def _resolve(named: Named, wants_fast: bool, word: str, tpot_ms: str | None, ttft_ms: str | None) -> Speed:
    modes = named.served.modes
    pace = _explicit_pace(tpot_ms, named) if tpot_ms is not None else None
    ttft = _milliseconds(TTFT_HEADER, ttft_ms) / 1000 if ttft_ms is not None else None
    outpaces = pace is not None and pace > modes.base.pace
    if modes.fast is not None and (named.fast or wants_fast or outpaces):
        return Speed(modes.fast.name, pace, word, ttft)
    return Speed(modes.base.name, pace, "default", ttft)


def _reads_as_fast(tier: str | None) -> bool:
    if tier is None or tier in STANDARD_WORDS:
        return False
    if tier in FAST_WORDS:
        return True
    words = ", ".join((*STANDARD_WORDS, *FAST_WORDS))
    problem = "is not available here" if tier == "ultrafast" else "is unknown"
    raise RequestError(400, f"'service_tier' {show(tier)} {problem}; it must be one of {words}.", param="service_tier")


def _explicit_pace(tpot_ms: str, named: Named) -> float:
    """1000 / milliseconds per token, in tokens per second."""
    pace, most = 1000 / _milliseconds(PACE_HEADER, tpot_ms), named.served.modes.highest
    if pace > most:
        raise RequestError(
            400,
            f"{PACE_HEADER} {show(tpot_ms)} asks for {pace:.4g} tokens/s; the most this server promises of "
            f"{named.served.id} is {most:.4g} tokens/s ({1000 / most:.4g} ms per token).",
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
