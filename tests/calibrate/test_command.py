"""`headway calibrate` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def calibrate(*arguments: str, cwd: Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ if home is None else os.environ | {"HEADWAY_HOME": str(home)}
    command = [sys.executable, "-m", "headway", "calibrate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, cwd=cwd, env=environment)


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
    tmp_path: Path, arguments: list[str], settings: str, code: int, says: str
) -> None:
    if settings:
        (tmp_path / "headway.toml").write_text(settings)
    done = calibrate(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("headway: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


def test_without_a_model_the_memory_is_measured(tmp_path: Path) -> None:
    done = calibrate("--json", "-", cwd=tmp_path, home=tmp_path / "empty")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["model"] is None
    assert [rung["megabytes"] for rung in report["bandwidth"]][:3] == [1, 2, 4]
    assert all(rung["gb_s"] > 0 for rung in report["bandwidth"])
    assert report["machine"]["cores"] >= 1
    assert "headway pull smollm2" in done.stderr


@pytest.mark.model
def test_the_real_model(smollm2: Path, tmp_path: Path) -> None:
    done = calibrate("--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of the floor's speed" in " ".join(done.stdout.split())
    model = json.loads((tmp_path / "out.json").read_text())["model"]
    assert model["id"] == "smollm2"
    assert 134e6 < model["weights"] < 135e6, "135 million, less the norms"
    assert model["weights"] < model["step_bytes"] < model["weight_bytes"]
    assert 0 < model["floor_ms"] < model["step_ms"][0]["ms"]
    assert [step["tokens"] for step in model["step_ms"]][-1] == 256
    assert model["error"]["steps"] == 200
    assert model["paces"]["fast"]["tokens_per_second"] > model["paces"]["standard"]["tokens_per_second"]
    assert model["paces"]["fast"]["beside_full_standard"] >= 2
