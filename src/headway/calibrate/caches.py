"""The caches of the processor, as the operating system describes them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM = Path("/sys/devices/system/cpu")
UNKNOWN, MEMORY = "unknown", "memory"
_SIZE = re.compile(r"([0-9]+)([KMG]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Cache:
    """A level that holds data. size: bytes of all its instances that the usable cores have, together."""

    level: int
    size: int

    @property
    def name(self) -> str:
        return f"L{self.level}"


def usable_cores() -> list[int]:
    """Logical CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def data_caches(cores: Collection[int], system: Path = SYSTEM) -> list[Cache]:
    """The levels that `cores` have, smallest first; empty where the system doesn't say (only Linux does, and not in every
    virtual machine)."""
    instances: dict[tuple[int, str], int] = {}
    for core in cores:
        for folder in (system / f"cpu{core}" / "cache").glob("index*"):
            try:
                kind, level, size, shared = (_word(folder / name) for name in ("type", "level", "size", "shared_cpu_list"))
                if kind != "Instruction":
                    instances[int(level), shared] = _bytes(size)
            except (OSError, ValueError):
                return []
    levels = sorted({level for level, _ in instances})
    return [Cache(level, sum(size for (at, _), size in instances.items() if at == level)) for level in levels]


def level_of(size: int, caches: Sequence[Cache]) -> str:
    """Where `size` bytes, read again and again, find room if they are spread over the cores: `L1`, ..., `memory`, `unknown`."""
    if not caches:
        return UNKNOWN
    return next((cache.name for cache in caches if size <= cache.size), MEMORY)


def _word(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"no size: {text!r}")
    return int(match[1]) * _UNITS[match[2]]
