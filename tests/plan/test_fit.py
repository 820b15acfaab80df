"""The fit, on a small sample of the public points (see points.csv for where they are from)."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.plan.accuracy import main
from headway.plan.fit import FIRST_PRIORS, Problem, cross_validate
from headway.plan.machine import Layout
from headway.plan.samples import contradictory, read_samples, sample_of
from headway.plan.steps import FIRST, fitted, predict
from headway.plan.terms import TERMS

POINTS = Path(__file__).with_name("points.csv")


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(read_samples(POINTS))


def row(**changes: str) -> dict[str, str]:
    with POINTS.open() as file:
        first = next(csv.DictReader(line for line in file if not line.startswith("#")))
    return first | changes


def test_the_shipped_coefficients_predict_the_sample() -> None:
    errors = []
    for one in read_samples(POINTS):
        step = predict(one.shape, one.machine, one.layout, one.load, one.engine)
        errors.append(abs(step.tpot / one.tpot - 1))
    assert np.median(errors) < 0.1
    assert np.mean(errors) < 0.15


def test_the_shipped_coefficients_name_every_term_and_their_source() -> None:
    known = fitted()
    assert set(known.terms) == {term.name for term in TERMS}
    assert set(known.first) == set(FIRST) == set(FIRST_PRIORS)
    assert min(known.terms.values()) > 0
    assert "Apache-2.0" in known.source
    assert known.accuracy["points"] == 2821


def test_a_fit_predicts_as_its_coefficients_do(problem: Problem) -> None:
    everyone = np.arange(len(problem.samples))
    parameters = problem.fit(everyone)
    columns = problem.first_terms(parameters)
    first = problem.fit_first(columns, everyone)
    known = problem.coefficients(parameters, first, {}, "")
    tpot, ttft = np.exp(problem.predict(parameters, everyone)[0]), np.exp(problem.predict_first(first, columns, everyone)[0])
    for place, one in enumerate(problem.samples):
        step = predict(one.shape, one.machine, one.layout, one.load, one.engine, coefficients=known)
        assert step.tpot == pytest.approx(tpot[place], rel=0.01)
        assert step.ttft == pytest.approx(ttft[place], rel=0.01)


def test_the_derivatives_are_those_of_the_predictions(problem: Problem) -> None:
    at = np.arange(0, len(problem.samples), 5)
    point = problem.prior + 0.1
    _, slopes = problem.predict(point, at)
    for place in range(len(point)):
        moved = point.copy()
        moved[place] += 1e-6
        numeric = (problem.predict(moved, at)[0] - problem.predict(point, at)[0]) / 1e-6
        assert numeric == pytest.approx(slopes[:, place], abs=1e-4)


def test_coefficients_are_found_again_from_times_made_with_them(problem: Problem) -> None:
    everyone = np.arange(len(problem.samples))
    truth = problem.prior.copy()
    truth[[term.name for term in TERMS].index("layer")] += 0.2
    truth[[term.name for term in TERMS].index("kv read")] -= 0.2
    made = Problem(problem.samples)
    made.tpot = problem.predict(truth, everyone)[0]
    made.trained[:] = True
    before = np.abs(made.predict(made.prior, everyone)[0] - made.tpot)
    after = np.abs(made.predict(made.fit(everyone), everyone)[0] - made.tpot)
    assert np.median(before) > 0.03
    assert np.median(after) < np.median(before) / 2


def test_a_group_is_predicted_without_its_points_and_better_after_four(problem: Problem) -> None:
    samples = [replace(one, tpot=one.tpot * (2 if one.group[0].startswith("MiniMax") else 1)) for one in problem.samples]
    changed = Problem(samples)
    checked = cross_validate(changed)
    held = np.array([one.group[0].startswith("MiniMax") for one in samples])
    plain = cross_validate(problem)
    assert checked.tpot[held] == pytest.approx(plain.tpot[held], rel=1e-9)
    measured = np.exp(changed.tpot)[held]
    before, after = np.abs(checked.tpot[held] / measured - 1), np.abs(checked.calibrated[held] / measured - 1)
    assert np.isnan(after).sum() == 4
    assert np.nanmedian(after) < np.median(before) / 2


def test_chips_named_twice_are_counted_once() -> None:
    names = {"model": "deepseek-ai/DeepSeek-R1", "gpu": "b200_sxm", "engine": "trtllm", "engine_version": "1.2.0rc6.post2"}
    squared = sample_of(row(**names, tp="64", dp="1", moe_tp="8", moe_ep="8", batch_size="4", concurrency="4"))
    shared = sample_of(row(**names, tp="1", dp="64", moe_tp="8", moe_ep="8", batch_size="2", concurrency="128"))
    assert squared.layout == Layout(8, 1, 8)
    assert shared.layout == Layout(1, 8, 8)
    assert shared.load.concurrency == 128


def test_runs_with_drafts_are_known_by_their_image() -> None:
    names = {"model": "deepseek-ai/DeepSeek-R1", "engine": "trtllm", "tp": "8", "moe_tp": "8", "moe_ep": "1", "dp": "1"}
    assert sample_of(row(**names, engine_version="1.2.0rc6.post3")).engine.drafts == 3
    assert sample_of(row(**names, engine_version="1.2.0rc6.post2")).engine.drafts == 0


def test_a_point_that_contradicts_its_series_is_named() -> None:
    rows = [
        sample_of(row(concurrency=str(n), batch_size=str(n), tpot_ms=str(t))) for n, t in ((4, 10), (8, 40), (16, 12), (32, 15))
    ]
    assert contradictory(rows) == {1}


def test_make_fit_writes_coefficients_and_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(POINTS), str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["accuracy"]["points"] == 92
    assert "tpot_median_error" in capsys.readouterr().out
    assert main([]) == 2
    assert main(["nowhere.csv"]) == 2
    told = capsys.readouterr().err
    assert "make fit GPU_SPEED_CSV=" in told
    assert "nowhere.csv: No such file" in told
