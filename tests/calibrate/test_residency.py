"""Where weights stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from headway.calibrate import residency
from headway.calibrate.residency import Residency, kept_residencies, residencies


@pytest.mark.parametrize(
    ("gb_s", "far", "words"),
    [
        (42.0, 19.0, "34 MB of weights a step, stays in cache (42 GB/s: at least 0.8 ms a step)"),
        (19.5, 19.0, "34 MB of weights a step, does not stay in cache (20 GB/s: at least 1.7 ms a step)"),
    ],
)
def test_it_says_where_and_what_that_means(gb_s: float, far: float, words: str) -> None:
    assert str(Residency(34_000_000, gb_s, far)) == words


def test_it_is_measured_for_each_size() -> None:
    small, large = residencies([1_000_000, 200_000_000], threads=1)
    assert (small.bytes, large.bytes) == (1_000_000, 200_000_000)
    assert small.far_gb_s == large.far_gb_s > 0
    assert min(small.gb_s, large.gb_s) > 0


def test_what_was_measured_once_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[int]] = []

    def measured(sizes: Sequence[int], threads: int | None = None) -> list[Residency]:
        asked.append(sizes)
        return [Residency(size, 40.5, 20.0) for size in sizes]

    monkeypatch.setattr(residency, "residencies", measured)
    first = kept_residencies([5, 7], tmp_path / "new", 2)
    assert kept_residencies([5, 7], tmp_path / "new", 2) == first == [Residency(5, 40.5, 20.0), Residency(7, 40.5, 20.0)]
    assert len(asked) == 1
    kept_residencies([5, 8], tmp_path / "new", 2)
    next((tmp_path / "new").iterdir()).write_text("half a fi")
    kept_residencies([5, 7], tmp_path / "new", 2)
    kept_residencies([5, 8], tmp_path / "new", 2)
    assert len(asked) == 3, "a damaged file is measured anew"
