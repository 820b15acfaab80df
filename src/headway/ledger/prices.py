"""What a request costs its user, exactly: whole billionths of the currency, so that sums over any rows agree."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

from headway.config import PricesSettings
from headway.modes import ModeName

NANO = 10**9
PER_TOKENS = 10**6


class Prices:
    """Prices are of a million tokens at standard; a mode's multiplier applies to all of them, cached input included."""

    def __init__(self, settings: PricesSettings) -> None:
        cached = settings.input if settings.cached_input is None else settings.cached_input
        multiplier = {mode: getattr(settings.multiplier, mode) for mode in ModeName}
        self._prices = {
            mode: [_nano(price) * Decimal(str(times)) for price in (settings.input, cached, settings.output)]
            for mode, times in multiplier.items()
        }

    def of(self, served: ModeName, prompt: int, cached: int, output: int) -> int:
        """10**-9 of the currency, rounded once. cached: those of the prompt that the prefix cache had."""
        of_input, of_cached, of_output = self._prices[served]
        exact = (prompt - cached) * of_input + cached * of_cached + output * of_output
        return int(exact.to_integral_value(ROUND_HALF_EVEN))


def _nano(per_million: float) -> Decimal:
    """Of one token; by way of the text that the settings file has, so that 0.1 is a tenth."""
    return Decimal(str(per_million)) * (NANO // PER_TOKENS)
