"""`headway plan --gpu this`: the machine at hand, from step times that were measured on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import CommandLine

from headway.catalog.home import home
from headway.catalog.resolve import resolve
from headway.plan.gguf_shape import read_gguf
from headway.plan.here import here
from headway.plan.machine import Load
from headway.runtime import kept
from headway.runtime.kept import KeptTimes
from headway.scheduler.cost import CostModel

MEASURED = CostModel([(1, 0.010), (4, 0.011), (16, 0.020), (64, 0.050), (256, 0.170)], 1e-6, 1e-5)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    resolve("smollm2")  # before the home is another: it is pulled there
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "home"))
    return CommandLine("plan", tmp_path, monkeypatch, capsys)


@pytest.fixture
def model() -> Path:
    return resolve("smollm2").path


def measured(model: Path, learnt: CostModel | None = None) -> None:
    sha256 = resolve(str(model)).sha256
    kept.write(home() / "ladders" / "one.json", KeptTimes(MEASURED, learnt, f"folder {sha256} engine", 1000, 32))


def test_where_nothing_was_measured_it_says_what_to_do(model: Path, plan: CommandLine) -> None:
    done = plan(str(model), "--gpu", "this")
    assert done.status == 2
    assert done.stderr == (
        "headway: no step times have been measured on this machine; `headway calibrate` measures them (half a minute)\n"
    )


def test_steps_are_those_that_were_measured(model: Path, plan: CommandLine) -> None:
    measured(model)
    found = json.loads(plan(str(model), "--gpu", "this", "--isl", "100", "--osl", "60", "--json", "-").stdout)
    points = {point["batch"]: point for point in found["points"]}
    assert max(points) == 32_000 // 160
    for rows, base in ((1, 0.010), (4, 0.011), (16, 0.020), (64, 0.050)):
        decoding = points[rows]["tpot_ms"] * (1 - points[rows]["parts"]["prompts"])
        assert decoding == pytest.approx(1e3 * (base + rows * (130e-6 + 1e-5)), rel=2e-3)
    assert points[1]["limit"] == "weights"
    assert found["fast"]["tokens_s_per_user"] >= 2.5 * found["standard"]["tokens_s_per_user"]
    assert found["accuracy"] is None
    assert "as measured here" in found["measured"]


def test_prompts_take_their_part_of_every_step(model: Path, plan: CommandLine) -> None:
    measured(model)
    machine = here(str(model), read_gguf(model))
    short, long = (machine.step(Load(8, isl, 100)) for isl in (10, 1000))
    each = (0.170 - 0.050) / 192 * 1000 + 1e-6 * 1000 * 1000 / 2
    assert long.parts["prompts"] == pytest.approx(8 / 100 * each)
    assert long.parts["prompts"] > 50 * short.parts["prompts"]
    assert long.ttft > 0.170 * 1000 / 256


def test_what_was_learnt_while_serving_is_told_but_not_planned_with(model: Path, plan: CommandLine) -> None:
    measured(model, CostModel([(n, 1.25 * s) for n, s in MEASURED.curve()], 1e-6, 1e-5))
    done = plan(str(model), "--gpu", "this", "--acceptance", "0.5")
    assert "while a server ran they took 1.25 times as long" in done.stdout
    assert "With 3 drafts, 50% accepted" in done.stdout
    assert here(str(model), read_gguf(model)).costs.seconds(1) == pytest.approx(0.010)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--tp", "2"), "--gpu this is one machine"),
        (("--precision", "fp8"), "leave --precision out"),
        (("--isl", "40000"), "KV cache holds 32000 tokens here"),
        (("--standard-speed", "5000"), "nothing here gives one user 5000 tokens/s"),
    ],
)
def test_what_this_machine_can_not_be_asked(model: Path, plan: CommandLine, arguments: tuple[str, ...], line: str) -> None:
    measured(model)
    done = plan(str(model), "--gpu", "this", *arguments)
    assert done.status == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_model_that_never_ran_is_scaled_from_one_that_did(plan: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = resolve("smollm2-spark")
    measured(spark.path)
    done = plan("llama-3.1-8b", "--gpu", "this")
    assert done.status == 0
    assert "never ran here: its step times are those of smollm2-spark" in done.stdout
    monkeypatch.setattr("headway.plan.here.psutil.virtual_memory", lambda: type("M", (), {"total": 4 * 2**30})())
    done = plan("llama-3.1-8b", "--gpu", "this")
    assert done.status == 2
    assert "needs 7.9 GiB for its weights as headway holds them; this machine has 4.0 GiB" in done.stderr


def test_a_model_that_the_embedded_engine_does_not_run(plan: CommandLine) -> None:
    done = plan("gpt-oss-120b", "--gpu", "this")
    assert done.status == 2
    assert "the embedded engine runs dense models with plain attention" in done.stderr
