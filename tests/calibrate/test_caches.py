"""The caches as /sys describes them, and machines that describe none."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.calibrate.caches import Cache, data_caches, level_of, usable_cores

KIB, MIB = 2**10, 2**20


def describe(system: Path, core: int, index: int, level: str, kind: str, size: str, shared: str) -> None:
    folder = system / f"cpu{core}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, word in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(word + "\n")


@pytest.fixture
def four_cores(tmp_path: Path) -> Path:
    """Own L1 and L2, and an L3 for each two."""
    for core in range(4):
        describe(tmp_path, core, 0, "1", "Data", "32K", str(core))
        describe(tmp_path, core, 1, "1", "Instruction", "64K", str(core))
        describe(tmp_path, core, 2, "2", "Unified", "1024K", str(core))
        describe(tmp_path, core, 3, "3", "Unified", "16M", f"{core // 2 * 2}-{core // 2 * 2 + 1}")
    return tmp_path


def test_instances_are_added_up_and_shared_ones_count_once(four_cores: Path) -> None:
    assert data_caches(range(4), four_cores) == [Cache(1, 128 * KIB), Cache(2, 4 * MIB), Cache(3, 32 * MIB)]
    assert data_caches([0, 1], four_cores) == [Cache(1, 64 * KIB), Cache(2, 2 * MIB), Cache(3, 16 * MIB)]


def test_a_set_is_named_after_the_smallest_level_that_holds_it(four_cores: Path) -> None:
    caches = data_caches(range(4), four_cores)
    sizes = (64 * KIB, MIB, 4 * MIB, 4 * MIB + 1, 32 * MIB, 64 * MIB)
    assert [level_of(size, caches) for size in sizes] == ["L1", "L2", "L2", "L3", "L3", "memory"]


@pytest.mark.parametrize("spoil", ["nothing there", "a file missing", "a strange size", "no number"])
def test_what_the_system_does_not_say_is_unknown(four_cores: Path, tmp_path: Path, spoil: str) -> None:
    broken = four_cores / "cpu1" / "cache" / "index2"
    if spoil == "nothing there":
        four_cores = tmp_path / "nowhere"
    elif spoil == "a file missing":
        (broken / "shared_cpu_list").unlink()
    else:
        (broken / ("size" if spoil == "a strange size" else "level")).write_text("plenty")
    assert data_caches(range(4), four_cores) == []
    assert level_of(MIB, []) == "unknown"


def test_there_is_a_core_to_run_on() -> None:
    assert usable_cores()
