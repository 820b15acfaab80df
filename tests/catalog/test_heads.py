"""Which draft head a model gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.catalog import heads
from headway.catalog.heads import head_for, own_path
from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.errors import UsageError
from headway.runtime.opened import draft_head

DIGEST = "0123456789abcdef" + "7" * 48


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(heads, "FOLDER", tmp_path / "own")
    (tmp_path / "own").mkdir()
    return tmp_path


def test_one_made_here_comes_before_the_one_that_comes_along(folders: Path) -> None:
    assert head_for(DIGEST) is None
    along = folders / "own" / "0123456789abcdef.safetensors"
    along.touch()
    assert head_for(DIGEST) == along
    assert own_path(DIGEST) == folders / "home" / "heads" / "0123456789abcdef.safetensors"
    own_path(DIGEST).parent.mkdir(parents=True)
    own_path(DIGEST).touch()
    assert head_for(DIGEST) == own_path(DIGEST)
    assert head_for("f" * 64) is None


@pytest.fixture
def model(folders: Path) -> LocalModel:
    path = folders / "model.gguf"
    path.write_bytes(b"weights")
    model = LocalModel(path, "gguf", "m", 7, 512, None)
    (folders / "own" / f"{model.sha256[:16]}.safetensors").touch()
    return model


def test_the_settings_have_the_last_word(folders: Path, model: LocalModel) -> None:
    settings = Settings()
    assert draft_head(model, settings) == folders / "own" / f"{model.sha256[:16]}.safetensors"
    assert draft_head(model, settings.with_overrides({"engine.draft_head": "none"})) is None
    assert draft_head(model, settings.with_overrides({"scheduler.speculation": False})) is None
    assert draft_head(model, settings.with_overrides({"engine.draft_head": str(model.path)})) == model.path
    with pytest.raises(UsageError, match="there is no file nowhere"):
        draft_head(model, settings.with_overrides({"engine.draft_head": "nowhere"}))
