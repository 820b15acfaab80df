"""Where a model's weights stay between two steps, by how fast as many bytes are read again and again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.calibrate.bandwidth import MEGABYTE, read_speeds
from headway.compare.machine import machine_facts
from headway.engines.base import EngineInfo
from headway.runtime.kept import path_of, write_json

FAR_MEGABYTES = 256
"""Beyond the caches of the cores that a server has."""
QUICKER = 1.5
"""How many times the speed of memory beyond the caches it takes to say that weights stay in them."""


@dataclass(frozen=True, slots=True)
class Residency:
    """bytes: that a step reads. gb_s: 10**9 bytes a second when as many are read again and again; far_gb_s: when they are far
    more than any cache holds."""

    bytes: int
    gb_s: float
    far_gb_s: float

    @property
    def stays(self) -> bool:
        """Whether the caches hold them, mostly: measured, since virtual machines state caches that they share."""
        return self.gb_s >= QUICKER * self.far_gb_s

    def __str__(self) -> str:
        where = "stays in cache" if self.stays else "does not stay in cache"
        floor = 1000 * self.bytes / (self.gb_s * 1e9)
        return f"{self.bytes / 1e6:.0f} MB of weights a step, {where} ({self.gb_s:.0f} GB/s: at least {floor:.1f} ms a step)"


def kept_residencies(sizes: Sequence[int], folder: Path, threads: int | None = None) -> list[Residency]:
    """As `residencies`, of what was measured on this machine before, if it was and `folder` has it; else measured and put
    there, where it can be written."""
    asked = json.dumps([list(sizes), threads, os.cpu_count(), machine_facts()["cpu"]])
    path = path_of(folder, f"residency {asked}")
    try:
        return [Residency(int(size), float(speed), float(far)) for size, speed, far in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        pass
    found = residencies(sizes, threads)
    write_json(path, [[r.bytes, r.gb_s, r.far_gb_s] for r in found])
    return found


def residencies(sizes: Sequence[int], threads: int | None = None) -> list[Residency]:
    """Of some numbers of bytes, measured now: about a second."""
    megabytes = [max(1, round(size / MEGABYTE)) for size in sizes]
    far = max(FAR_MEGABYTES, 2 * max(megabytes))
    *speeds, beyond = read_speeds([*megabytes, far], threads or os.cpu_count() or 1, lambda seconds: None)
    return [Residency(size, speed, beyond) for size, speed in zip(sizes, speeds, strict=True)]


def step_bytes(info: EngineInfo) -> int:
    """Of weights that a step reads."""
    return info.matrices.bytes if info.matrices else info.weight_bytes
