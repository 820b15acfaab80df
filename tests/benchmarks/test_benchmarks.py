"""The benchmarks run, and write what they promise; those that need a server only explain themselves here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run_benchmark(name: str, *arguments: str, results: Path) -> dict[str, object]:
    """Run a benchmark in a copy of its folder, so that a test never overwrites real results."""
    for script in BENCHMARKS.glob("*.py"):
        (results / script.name).write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(results / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    report: dict[str, object] = json.loads((results / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return report


def test_compose_reports_its_calls(tmp_path: Path) -> None:
    report = run_benchmark("compose", "--requests", "16", "--fast", "2", "--steps", "20", results=tmp_path)
    assert report["calls"].keys() == {"compose", "plan", "complete"}  # type: ignore[attr-defined]
    assert report["machine"]
    assert report["versions"]
    assert report["command"] == "python benchmarks/compose.py --requests 16 --fast 2 --steps 20"


def test_sampling_reports_every_kind(tmp_path: Path) -> None:
    report = run_benchmark("sampling", "--flat", "--rows", "8", "--vocabulary", "1000", "--repeats", "2", results=tmp_path)
    assert report["kinds"].keys() == {"flat"}  # type: ignore[attr-defined]
    assert_every_kind(report["kinds"]["flat"])  # type: ignore[index]


def test_policies_reports_every_policy_under_every_traffic(tmp_path: Path) -> None:
    report = run_benchmark("policies", "--requests", "40", "--fast-share", "0.3", results=tmp_path)
    runs = report["runs"]
    assert len(runs) == 2 * 3 * 4  # type: ignore[arg-type]
    for run in runs:  # type: ignore[attr-defined]
        assert run["requests"] == run["modes"]["standard"]["served"] + run["modes"]["fast"]["served"] == 40
    assert {run["policy"] for run in runs} == {"pace", "fcfs", "priority", "split"}  # type: ignore[attr-defined]


@pytest.mark.model
def test_sampling_measures_the_models_own_logits_and_step(tmp_path: Path, smollm2: Path) -> None:
    report = run_benchmark("sampling", "--model", str(smollm2), "--rows", "3", "--repeats", "2", results=tmp_path)
    assert report["model"] == smollm2.name
    assert report["step_measured"] is True
    assert report["kinds"].keys() == {"real", "flat"}  # type: ignore[attr-defined]
    real = report["kinds"]["real"]  # type: ignore[index]
    assert_every_kind(real)
    share = real["greedy"]["median_ms"] / report["step_ms"]
    assert real["greedy"]["share_of_step"] == pytest.approx(share, abs=1e-3)


@pytest.mark.model
def test_grammar_reports_masks_and_sampling(tmp_path: Path, smollm2: Path) -> None:
    report = run_benchmark("grammar", "--model", str(smollm2), "--rows", "5", "--passes", "1", results=tmp_path)
    for name in ("masks", "masks and 4 drafts each", "sampling, plain", "sampling, constrained"):
        share = report[name]["median_ms"] / report["step_ms"]  # type: ignore[index,operator]
        assert report[name]["share_of_step"] == pytest.approx(share, rel=1e-2)  # type: ignore[index]


def assert_every_kind(kinds: dict[str, object]) -> None:
    assert {"greedy", "temperature", "top_p", "top_k", "min_p", "penalties", "logprobs", "mixed"} == kinds.keys()


def test_a_model_that_is_not_there_is_one_clear_line() -> None:
    command = [sys.executable, str(BENCHMARKS / "sampling.py"), "--model", "./no-such-model.gguf"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no-such-model" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["load_tools", "peers", "overhead", "sampling", "simulator", "structured", "websocket"])
def test_the_others_explain_themselves(name: str) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "How to read it" in done.stdout
