"""`headway calibrate` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import CommandLine

from headway.calibrate import bandwidth


@pytest.fixture
def calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine("calibrate", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "says"),
    [
        (["smolm2"], "", 1, "did you mean smollm2?"),
        (["./nowhere.gguf"], "", 1, "there is no file or folder ./nowhere.gguf"),
        ([], '[model]\nname = "nonesuch"', 1, "unknown model 'nonesuch'"),
        ([], "[engine]\nthreads = 0", 2, "engine.threads is 0"),
        (["--config", "none.toml"], "", 2, "none.toml can't be read"),
        (["--json", "nowhere/out.json"], "", 2, "the folder nowhere doesn't exist"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_measured(
    calibrate: CommandLine, arguments: list[str], settings: str, code: int, says: str
) -> None:
    if settings:
        (calibrate.folder / "headway.toml").write_text(settings)
    done = calibrate(*arguments)
    assert (done.status, done.stdout) == (code, "")
    assert done.stderr.startswith("headway: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


def test_without_a_model_the_memory_is_measured(calibrate: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_HOME", str(calibrate.folder / "empty"))
    monkeypatch.setattr(bandwidth, "SIZES", bandwidth.SIZES[:4])
    done = calibrate("--json", "-")
    assert done.status == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["model"] is None
    assert [rung["megabytes"] for rung in report["bandwidth"]] == [1, 2, 4, 8]
    assert all(rung["gb_s"] > 0 for rung in report["bandwidth"])
    assert report["machine"]["cores"] >= 1
    assert "headway pull smollm2" in done.stderr


@pytest.mark.model
def test_the_real_model(smollm2: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headway", "calibrate", "--json", "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of the floor's speed" in " ".join(done.stdout.split())
    report = json.loads((tmp_path / "out.json").read_text())
    model, ladder = report["model"], report["bandwidth"]
    assert [rung["megabytes"] for rung in ladder][:4] == [1, 2, 4, 8] and all(rung["gb_s"] > 0 for rung in ladder)
    assert model["id"] == "smollm2"
    assert 134e6 < model["weights"] < 135e6, "135 million, less the norms"
    assert model["weights"] < model["step_bytes"] < model["weight_bytes"]
    assert model["floor_ms"] == pytest.approx(model["step_bytes"] / model["floor_gb_s"] / 1e6, rel=0.01)
    assert model["floor_share"] == pytest.approx(model["floor_ms"] / model["step_ms"][0]["ms"], rel=0.01)
    assert [step["tokens"] for step in model["step_ms"]][-1] == 256
    assert model["error"]["steps"] == 200
    assert model["paces"]["fast"]["tokens_per_second"] > model["paces"]["standard"]["tokens_per_second"]
    assert model["paces"]["fast"]["beside_full_standard"] >= 2
