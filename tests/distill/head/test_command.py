"""`headway draft-head` as a user types it."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from commandline import CommandLine
from filelock import FileLock

from headway.catalog import heads
from headway.catalog.local import open_local
from headway.catalog.resolve import resolve
from headway.config import Settings
from headway.distill.gather import Stopped
from headway.distill.head import command as module
from headway.distill.head.command import CHECKPOINT, DraftHeadOptions, draft_head_command
from headway.engines.draft_head import DraftHead
from headway.errors import UsageError

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="training needs the extra 'distill'")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headway", "draft-head", *arguments]


def draft_head(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=280, check=False, cwd=cwd, env=os.environ | environment
    )


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "no model is given"),
        (["smollm2", "--tokens", "10"], 2, "--tokens must be at least 1,000, not 10"),
        (["smollm2", "--epochs", "0"], 2, "--epochs must be more than 0"),
        (["smollm2", "--minutes", "nan"], 2, "--minutes must be more than 0"),
        (["smollm2", "--minutes", "1", "--epochs", "1"], 2, "give --epochs or --minutes, not --epochs and --minutes"),
        (["smollm2", "--vocabulary", "0"], 2, "--vocabulary must be at least 1"),
        (["smollm2", "--data", "none.txt"], 2, "none.txt can't be read"),
        (["smollm2", "--data", "empty.txt"], 2, "there are no prompts in empty.txt"),
        (["smollm2", "--json", "nowhere/out.json"], 2, "the folder nowhere doesn't exist"),
        (["smollm2", "--config", "none.toml"], 2, "none.toml can't be read"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    (tmp_path / "empty.txt").touch()
    done = CommandLine("draft-head", tmp_path, monkeypatch, capsys)(*arguments)
    assert (done.status, done.stdout) == (code, "")
    assert done.stderr.startswith("headway: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


def test_without_torch_it_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('none here')")
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    done = draft_head("smollm2", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr == "headway: draft-head needs torch, which isn't installed: pip install 'headway[distill]'\n"


@pytest.fixture
def gathering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """The command up to the collecting of answers, in which something happens."""
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["headway", "draft-head", "my model", "--epochs", "3"])
    monkeypatch.setattr(module, "check_libraries", lambda *arguments: None)
    monkeypatch.setattr(module, "resolve", lambda name: SimpleNamespace(sha256="a" * 64, id="m"))
    monkeypatch.setattr(module, "open_source", lambda *arguments: None)

    def run(error: Exception) -> None:
        def gather(*arguments: object) -> None:
            raise error

        monkeypatch.setattr(module, "gather", gather)
        draft_head_command(Settings().with_overrides({"model.name": "m"}), DraftHeadOptions())

    return run


def test_a_full_disk_is_one_line(gathering: Callable[[Exception], None]) -> None:
    with pytest.raises(UsageError, match="can't be used: No space left on device") as refused:
        gathering(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert "aaaaaaaaaaaaaaaa" in str(refused.value), "the folder of this model"


def test_who_stops_it_is_told_how_to_go_on(gathering: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        gathering(Stopped(signal.SIGINT, "at epoch 0.40 of the training"))
    assert left.value.code == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == (
        "headway: stopped at epoch 0.40 of the training; go on with: headway draft-head 'my model' --epochs 3 --resume"
    )


def test_two_at_once_do_not_write_into_one_folder(gathering: Callable[[Exception], None], tmp_path: Path) -> None:
    work = tmp_path / "distill" / ("a" * 16)
    work.mkdir(parents=True)
    with FileLock(work / "lock"), pytest.raises(UsageError, match="another headway draft-head works in"):
        gathering(RuntimeError("not reached"))


@needs_torch
@pytest.mark.model
def test_places_that_cannot_be_written_to_are_one_line(tmp_path: Path, smollm2: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / CHECKPOINT).touch()
    cases = {
        ("--out", "nowhere/head"): "the folder nowhere doesn't exist",
        ("--out", "work"): "work is a folder",
        ("--work", "file/deeper"): "can't be used",
        ("--work", "work"): "go on with --resume",
        ("--tokens", "99999999999", "--work", "big"): "GB are needed",
    }
    for arguments, says in cases.items():
        done = draft_head("smollm2", "--out", "head", *arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert says in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


@needs_torch
@pytest.mark.model
def test_it_is_stopped_goes_on_and_makes_a_head_that_serve_finds(tmp_path: Path, smollm2: Path) -> None:
    """HEADWAY_HOME stays as it is: the model lies there. What the command writes is named."""
    data = tmp_path / "data.txt"
    data.write_text("\n".join(f"Tell me a fact about the number {n}." for n in range(60)))
    arguments = ["smollm2", "--data", "data.txt", "--tokens", "1500", "--vocabulary", "900", "--work", "work", "--out", "head"]
    with subprocess.Popen(
        command(*arguments, "--epochs", "100"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("training on"):
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, lines
    assert "go on with: headway draft-head smollm2 --data data.txt" in lines[-1]
    assert lines[-1].rstrip().endswith("--resume")
    assert (tmp_path / "work" / CHECKPOINT).exists()
    assert not (tmp_path / "head").exists()

    done = draft_head(*arguments, "--epochs", "2", "--resume", cwd=tmp_path)
    assert done.returncode == 2
    assert "is of a training with epochs = 100.0, not 2.0" in done.stderr
    (tmp_path / "work" / CHECKPOINT).unlink()
    done = draft_head(*arguments, "--epochs", "2", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "collecting answers" not in done.stderr, "those of the first run are used"
    report = json.loads(done.stdout)
    head = DraftHead.load(tmp_path / "head")
    assert head.card == report["card"]
    assert head.layers == (9, 19, 29)
    assert len(head.vocabulary) == 900
    assert head.card["sha256"] == open_local(smollm2).sha256 == resolve("smollm2").sha256
    assert len(report["card"]["held_out"]["right"]) == 3
    assert report["card"]["tokens"] >= 1500
    assert not (tmp_path / "work" / CHECKPOINT).exists()
    assert heads.own_path(resolve("smollm2").sha256).name == f"{resolve('smollm2').sha256[:16]}.safetensors"
