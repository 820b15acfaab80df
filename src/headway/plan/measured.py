"""The chips that the fit's points were measured on. Figures of NVIDIA's data sheets, dense (the sparse ones halved), one way."""

from __future__ import annotations

from difflib import get_close_matches

from headway.errors import UsageError
from headway.plan.machine import Machine

MACHINES = {
    "h100_sxm": Machine("H100", "hopper", 80e9, 3.35e12, 0.989e15, 450e9),
    "h200_sxm": Machine("H200", "hopper", 141e9, 4.8e12, 0.989e15, 450e9),
    "b200_sxm": Machine("B200", "blackwell", 180e9, 8.0e12, 2.25e15, 900e9, fp4=True),
    "b300_sxm": Machine("B300", "blackwell", 270e9, 8.0e12, 2.25e15, 900e9, fp4=True),
    "gb200": Machine("GB200", "blackwell", 186e9, 8.0e12, 2.5e15, 900e9, fp4=True),
}


def find_machine(name: str) -> Machine:
    """By its name, in any case, with or without _sxm. Raises UsageError with the nearest names."""
    plain = name.lower().replace("-", "_").removesuffix("_sxm")
    known = {machine.name.lower(): machine for machine in MACHINES.values()}
    if plain in known:
        return known[plain]
    close = get_close_matches(plain, list(known), 3, 0.5)
    names = " or ".join(known[one].name for one in close) if close else ", ".join(one.name for one in known.values())
    raise UsageError(f"chip {name!s:.60} isn't known; {'did you mean ' + names + '?' if close else 'known are ' + names}")
