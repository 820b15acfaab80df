"""What is made of the figures."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from headway.calibrate.bandwidth import Bandwidth
from headway.calibrate.caches import Cache
from headway.calibrate.model import ModelResult, step_times
from headway.calibrate.report import Calibration, print_report, to_json
from headway.calibrate.trial import Error
from headway.engines.base import EngineInfo, Matrices
from headway.modes import Mode, ModeName, Modes
from headway.scheduler.cost import CostModel

LADDER = [Bandwidth(1, 200.0, 100.0, "L2"), Bandwidth(64, 50.0, 30.0, "memory")]
COSTS = CostModel([(1, 0.01), (8, 0.02), (64, 0.05), (256, 0.2)], 0.0, 0.0)
MODES = Modes(Mode(ModeName.STANDARD, 10.0, 32, 0, 2.0), Mode(ModeName.FAST, 25.0, 2, 0, 0.3))


LEARNT = CostModel([(1, 0.01), (8, 0.03), (64, 0.05), (256, 0.2)], 0.0, 0.0)
SLOWER = Modes(Mode(ModeName.STANDARD, 7.0, 32, 0, 2.0), Mode(ModeName.FAST, 17.5, 2, 0, 0.3))


def result(matrices: Matrices | None) -> ModelResult:
    return ModelResult(
        id="m",
        info=EngineInfo(300, 100, 4, 9, 8, 1_500_000, True, "an engine", matrices),
        step_bytes=100_000_000,
        floor_gb_s=50.0,
        far_gb_s=20.0,
        steps=step_times(COSTS, matrices),
        costs=COSTS,
        error=Error(200, 0.04, 0.2, 0.08, 0.31),
        modes=MODES,
        fast_beside_full=1,
    )


def shown(calibration: Calibration, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_report(calibration, Console(file=out, width=200))
    out.seek(0)
    return out.read()


def test_the_floor_and_the_work_follow_from_the_weights() -> None:
    model = result(Matrices(100_000_000, 90_000_000))
    assert model.floor_seconds == pytest.approx(0.002)
    assert model.floor_share == pytest.approx(0.2)
    by_tokens = {step.tokens: step for step in model.steps}
    assert by_tokens[8].gflop_s == pytest.approx(2 * 90e6 * 8 / 0.02 / 1e9)


def test_json_has_the_documented_keys_and_survives_json() -> None:
    report = json.loads(json.dumps(to_json(Calibration([Cache(2, 2**21)], LADDER, result(Matrices(10**8, 9 * 10**7))))))
    assert report["machine"]["caches"] == [{"level": 2, "bytes": 2**21}]
    assert report["bandwidth"][0] == {"megabytes": 1, "gb_s": 200.0, "gb_s_one_thread": 100.0, "level": "L2"}
    model = report["model"]
    assert (model["weight_bytes"], model["step_bytes"], model["floor_ms"]) == (1_500_000, 100_000_000, 2.0)
    assert model["step_ms"][0] == {"tokens": 1, "ms": 10.0, "gflop_s": 18.0}
    assert model["cost_model"] == json.loads(json.dumps(COSTS.to_dict()))
    assert model["error"] == {"steps": 200, "median": 0.04, "p95": 0.2, "ladder_median": 0.08, "ladder_p95": 0.31}
    assert model["paces"]["fast"] == {"tokens_per_second": 25.0, "most": 2, "beside_full_standard": 1}


def test_an_engine_that_cannot_count_its_weights_leaves_the_work_unknown() -> None:
    calibration = Calibration([], LADDER, result(None))
    model = to_json(calibration)["model"]
    assert model["weights"] is None
    assert {step["gflop_s"] for step in model["step_ms"]} == {None}
    assert "unknown" in shown(calibration)


def test_the_tables_say_it() -> None:
    text = shown(Calibration([], LADDER, result(Matrices(10**8, 9 * 10**7))))
    assert "floor 2.0 ms at 50.0 GB/s (100 MB of weights a step), measured 10.0 ms: 20% of the floor's speed" in text
    assert "standard 10.0 tokens/s for 32 requests at once; fast 25.0 tokens/s for 2, 1 beside 32 standard ones" in text
    assert "off by 4.0% (median) and 20.0% (p95) in 200 live steps" in text
    bars = [line.count("█") for line in text.splitlines() if "MiB" in line]
    assert bars[0] == 4 * bars[1] > 0
    assert not any("256" in line for line in text.splitlines() if "MiB" not in line), "decoding rows only"


def test_what_was_learnt_is_shown_beside_what_was_measured() -> None:
    model = result(None)
    assert to_json(Calibration([], LADDER, model))["model"]["learnt"] is None
    assert "Learnt" not in shown(Calibration([], LADDER, model))
    learnt = Calibration([], LADDER, replace(model, learnt=LEARNT, modes_learnt=SLOWER))
    text = shown(learnt)
    assert "Paces: standard 10.0 tokens/s" in text
    assert "Learnt while serving: a step of 8 rows takes 1.50 times as long" in text
    assert "standard 7.0 tokens/s, fast 17.5" in text
    report = to_json(learnt)["model"]["learnt"]
    assert report == {"cost_model": LEARNT.to_dict(), "paces": {"standard": 7.0, "fast": 17.5}}


def test_a_plain_terminal_gets_plain_characters() -> None:
    text = shown(Calibration([], LADDER, None), "ascii")
    assert "####" in text
    assert "No model was measured" in text
