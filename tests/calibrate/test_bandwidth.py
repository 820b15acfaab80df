"""The memory ladder: what it reads, with whom, and what is made of it. How fast that is depends on the machine."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from headway.calibrate import bandwidth
from headway.calibrate.bandwidth import MEGABYTE, PASSES, Bandwidth, at, measure, num_steps, sizes
from headway.calibrate.caches import Cache


def free_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(bandwidth.psutil, "virtual_memory", lambda: SimpleNamespace(available=size))


def test_the_largest_set_leaves_memory_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    free_memory(monkeypatch, 100 * 2**30)
    assert sizes() == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    free_memory(monkeypatch, 300 * MEGABYTE)
    assert sizes()[-1] == 128
    free_memory(monkeypatch, 0)
    assert sizes() == [1]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_reads_all_of_its_own_part_as_often_as_is_counted(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    read: list[tuple[int, int, int]] = []

    def reading(part: np.ndarray, times: int) -> tuple[float, float]:  # type: ignore[type-arg]
        assert part.flags.c_contiguous and (part == 1).all()
        read.append((threading.get_ident(), part.nbytes, times))
        return 0.0, 0.5

    monkeypatch.setattr(bandwidth, "_read", reading)
    steps: list[float] = []
    speeds = bandwidth.read_speeds([1, 2], threads, steps.append)
    assert sum(steps) == 2 * PASSES
    assert {ident for ident, _, _ in read} == {ident for ident, _, _ in read[:threads]}
    assert len({ident for ident, _, _ in read}) == threads
    assert sum(size for _, size, _ in read[:threads]) == pytest.approx(MEGABYTE, rel=0.001)
    times = read[-1][2]
    assert speeds[1] == pytest.approx(times * 2 * MEGABYTE / 0.5 / 1e9, rel=0.001)


def test_a_pass_lasts_from_the_first_start_to_the_last_end() -> None:
    with ThreadPoolExecutor(2) as pool:
        readers = bandwidth._Readers(pool, 2, MEGABYTE)
        spans = iter([(1.0, 3.0), (1.5, 4.0)])
        readers._all = lambda work: list(spans)  # type: ignore[method-assign,assignment]
        assert readers.read(MEGABYTE, 1) == 3.0


def test_one_call_reads_the_part_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []  # type: ignore[type-arg]
    maximum = SimpleNamespace(reduce=lambda values, axis: seen.append(values.sum(axis=axis)))
    monkeypatch.setattr(bandwidth.np, "maximum", maximum)
    bandwidth._read(np.arange(5), 3)
    assert [sums.tolist() for sums in seen] == [[10, 10, 10]]


def test_a_thread_that_fails_leaves_nobody_waiting() -> None:
    def fail() -> None:
        raise MemoryError

    with ThreadPoolExecutor(2) as pool:
        readers = bandwidth._Readers(pool, 2, MEGABYTE)
        with pytest.raises(MemoryError):
            readers._all(fail)


def test_the_ladder_is_measured_on_this_machine() -> None:
    steps: list[float] = []
    ladder = measure([1, 2], 2, [Cache(2, MEGABYTE)], steps.append)
    assert [(rung.megabytes, rung.level) for rung in ladder] == [(1, "L2"), (2, "memory")]
    assert all(rung.gb_s > 0 and rung.gb_s_one_thread > 0 for rung in ladder)
    assert sum(steps) == num_steps([1, 2])


def test_bandwidth_between_two_rungs_goes_by_the_logarithm() -> None:
    ladder = [Bandwidth(64, 80.0, 40.0, "L3"), Bandwidth(256, 40.0, 20.0, "memory")]
    assert [at(ladder, n * MEGABYTE) for n in (64, 128, 256)] == pytest.approx([80.0, 60.0, 40.0])
    assert [at(ladder, n * MEGABYTE) for n in (0, 1, 4096)] == [80.0, 80.0, 40.0]
