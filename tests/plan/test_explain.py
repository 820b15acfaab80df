"""The reference case: what it says follows from the models of a step and of a wafer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.plan import explain as room
from headway.plan.explain import FAST, SPARK, STANDARD, explain, explain_command


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MODELS", (("llama-3.1-70b", "fp8"), ("llama-3.1-405b", "fp8")))
    monkeypatch.setattr(room, "CHIPS", ("H100 SXM", "B200 SXM"))


def test_the_faster_costs_more_and_needs_smaller_batches() -> None:
    found, plan = explain()
    assert found.cases
    for case in found.cases:
        assert case.multiple > 1
        assert case.rows[1] / case.chips[1] < case.rows[0] / case.chips[0]
        assert case.most >= FAST
    assert len(found.cases) + len(found.slow) == 8
    assert plan.curve.standard.speed >= STANDARD * 0.99


def test_a_thousand_tokens_a_second_take_a_small_model_on_a_wafer() -> None:
    found, _ = explain()
    speeds = dict(found.wafer)
    assert speeds["20B dense in 16 bits, one wafer"] > SPARK
    assert found.gpu[1] < SPARK
    assert 20e9 < found.limit < 60e9


def test_text_json_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain_command(tmp_path / "case.json", tmp_path)
    text = capsys.readouterr().out
    assert "Where public information ends" in text
    assert json.loads((tmp_path / "case.json").read_text())["reference"]["price_multiple"] == 6
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
