"""Step times of an opened model, and the cache of them that serve and calibrate share."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_engine import FakeEngine

from headway.runtime import opened
from headway.runtime.opened import OpenModel
from headway.scheduler.limits import Limits


def test_a_fresh_ladder_is_measured_and_kept_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def step_times(engine: object, most: int, cache: Path, *, identity: str, fresh: bool) -> str:
        asked.append((most, cache, identity, fresh))
        return "times"

    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path))
    monkeypatch.setattr(opened, "step_times", step_times)
    model = OpenModel(FakeEngine(), Limits(max_step_tokens=99), "what it depends on")
    said: list[str] = []
    assert model.step_times(said.append, fresh=True) == model.step_times(said.append) == "times"
    assert asked == [(99, tmp_path / "ladders", "what it depends on", fresh) for fresh in (True, False)]
    assert said == ["measuring step times"] * 2
