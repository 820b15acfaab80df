"""The chips that the fit's points were measured on, by the names the points give them."""

from __future__ import annotations

from functools import cache

from headway.plan.chip import chip
from headway.plan.machine import Machine

_NAMES = {"h100_sxm": "H100 SXM", "h200_sxm": "H200", "b200_sxm": "B200", "b300_sxm": "B300", "gb200": "GB200"}


@cache
def machine_of(name: str) -> Machine:
    """Raises KeyError for a name that no point has."""
    return chip(_NAMES[name]).machine()
