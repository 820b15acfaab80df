"""How fast this machine reads memory, by how much of it is read again and again."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import psutil
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from headway.calibrate.caches import Cache, level_of

MEGABYTE = 2**20
SIZES = tuple(2**n for n in range(11))
"""Megabytes of each working set: 1 to 1,024."""
PASSES = 7
PASS_SECONDS = 0.03
"""Long enough that threads which don't start at the same moment hardly matter."""
FREE_SHARE = 0.5
"""Of the free memory that may be taken."""

Ints = NDArray[np.int64]
Advance = Callable[[float], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Reading `megabytes` (of 2**20 bytes) again and again: gb_s with all cores, each its own part, gb_s_one_thread with one
    (10**9 bytes a second). level: the cache that the set fits into when it is spread over all cores."""

    megabytes: int
    gb_s: float
    gb_s_one_thread: float
    level: str


def sizes() -> list[int]:
    """The working sets that the free memory has room for, in megabytes."""
    room = FREE_SHARE * psutil.virtual_memory().available
    return [n for n in SIZES if n == SIZES[0] or n * MEGABYTE <= room]


def measure(megabytes: Sequence[int], threads: int, caches: Sequence[Cache], advance: Advance) -> list[Bandwidth]:
    """The memory ladder. advance: called with 1 after each of `num_steps(megabytes)` steps."""
    together = read_speeds(megabytes, threads, advance)
    alone = read_speeds(megabytes, 1, advance)
    return [
        Bandwidth(n, many, one, level_of(n * MEGABYTE, caches)) for n, many, one in zip(megabytes, together, alone, strict=True)
    ]


def num_steps(megabytes: Sequence[int]) -> int:
    return 2 * PASSES * len(megabytes)


def read_speeds(megabytes: Sequence[int], threads: int, advance: Advance) -> list[float]:
    """10**9 bytes a second for each working set, shared out over `threads`: the median of PASSES passes."""
    speeds = []
    with ThreadPoolExecutor(threads) as pool:
        readers = _Readers(pool, threads, max(megabytes) * MEGABYTE // threads)
        for n in megabytes:
            size = n * MEGABYTE // threads
            times = readers.repeats(size)
            passes = []
            for _ in range(PASSES):
                passes.append(readers.read(size, times))
                advance(1)
            speeds.append(times * threads * size / statistics.median(passes) / 1e9)
    return speeds


def at(ladder: Sequence[Bandwidth], size: float) -> float:
    """gb_s with all cores for a working set of `size` bytes: between two rungs by the logarithm of their sizes, beyond the
    ends that of the last."""
    return float(
        np.interp(
            math.log2(max(size, 1.0) / MEGABYTE), [math.log2(rung.megabytes) for rung in ladder], [rung.gb_s for rung in ladder]
        )
    )


class _Readers:
    """Threads that each read a part of their own. Filled by the thread that will read it, so that on a machine with several
    memories it lies beside its core."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int, size: int) -> None:
        self._pool = pool
        self._threads = threads
        self._own = threading.local()
        self._barrier = threading.Barrier(threads)
        self._all(lambda: self._fill(size))

    def read(self, size: int, times: int) -> float:
        """Read `size` bytes of each part so many times. Seconds from the first thread's start to the last one's end."""
        spans = self._all(lambda: _read(self._own.part[: size // 8], times))
        return max(end for _, end in spans) - min(begun for begun, _ in spans)

    def repeats(self, size: int) -> int:
        """How often the parts have to be read to fill a pass. The first reading brings them into their cache."""
        times = 1
        self.read(size, times)
        while (taken := self.read(size, times)) < PASS_SECONDS / 2:
            times = math.ceil(times * min(64.0, PASS_SECONDS / max(taken, 1e-6)))
        return times

    def _all(self, work: Callable[[], T]) -> list[T]:
        """Once in every thread, all at the same moment."""

        def one(_: int) -> T:
            self._barrier.wait()
            return work()

        try:
            return list(self._pool.map(one, range(self._threads)))
        except BaseException:
            self._barrier.abort()  # nobody waits for a thread that never comes
            raise

    def _fill(self, size: int) -> None:
        self._own.part = np.ones(size // 8, np.int64)


def _read(part: Ints, times: int) -> tuple[float, float]:
    """Begin and end. All in one call, which lets go of Python's lock. The largest of 64-bit integers is what numpy finds with
    the widest loads and one instruction each: 90 to 110 GB/s on one core from L2, where a sum of 32-bit numbers, bound by its
    arithmetic, gets to 17."""
    again = as_strided(part, (times, part.size), (0, part.itemsize), writeable=False)
    begun = time.perf_counter()
    np.maximum.reduce(again, axis=1)
    return begun, time.perf_counter()
