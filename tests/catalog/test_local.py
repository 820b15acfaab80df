"""Models by path: whatever their names (M5), and whole IR folders only."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headway.catalog.local import open_local, printable_id
from headway.catalog.resolve import find_here, resolve
from headway.errors import ModelError

from . import tiny


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tiny.gguf())
    return path


def test_a_path_of_any_letters(tmp_path: Path) -> None:  # M5
    model = resolve(str(made(tmp_path / "bad" / "модель ü 模型 🦙" / "смол.gguf")))
    assert (model.kind, model.context_length, model.licence) == ("gguf", 512, "mit")
    assert model.id.isascii()
    assert model.id.isprintable()


def test_a_path_with_steps_back(tmp_path: Path) -> None:  # M5
    made(tmp_path / "m.gguf")
    deep = tmp_path / "1" / "2" / "3" / "4" / "5"
    deep.mkdir(parents=True)
    assert resolve(str(deep / "../../../../../m.gguf")).id == "m"


def test_a_link_keeps_its_own_name(tmp_path: Path) -> None:  # M5
    made(tmp_path / "blob-without-suffix")
    (tmp_path / "nice.gguf").symlink_to(tmp_path / "blob-without-suffix")
    model = resolve(str(tmp_path / "nice.gguf"))
    assert (model.id, model.path.name) == ("nice", "nice.gguf")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:  # M5
    path = made(tmp_path / "sealed" / "m.gguf")
    path.parent.chmod(0o555)
    try:
        assert resolve(str(path)).id == "m"
    finally:
        path.parent.chmod(0o755)


def test_a_path_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "m.gguf")
    monkeypatch.chdir(tmp_path)
    assert resolve("m.gguf").path == tmp_path / "m.gguf"


def test_a_gguf_by_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"ends in \.gguf"):
        resolve(str(made(tmp_path / "model.bin")))


@pytest.mark.parametrize("name", ["nowhere.gguf", "some/folder", "~nobody-of-this-name/x.gguf"])
def test_a_path_that_is_not_there(name: str) -> None:
    with pytest.raises(ModelError, match="there is no file or folder"):
        resolve(name)


@pytest.mark.parametrize(("name", "near"), [("smolm2", "did you mean smollm2"), ("SmolLM2", "did you mean smollm2")])
def test_an_unknown_name_has_its_nearest_known_one(name: str, near: str) -> None:
    with pytest.raises(ModelError, match=near):
        resolve(name)


@pytest.mark.parametrize("name", ["", "zzz"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ModelError, match="known: smollm2"):
        resolve(name)


def test_the_digest_is_the_files(tmp_path: Path) -> None:
    path = made(tmp_path / "m.gguf")
    assert open_local(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_ir_folder(tmp_path: Path) -> None:
    folder = tiny.ir_folder(tmp_path / "my model")
    (folder / "README.md").write_text("---\ntags: [a]\nlicense: mit\n---\n# x\n")
    model = resolve(str(folder))
    assert (model.kind, model.id, model.context_length, model.licence) == ("ir", "my-model", 256, "mit")
    before = model.sha256
    (folder / "openvino_model.bin").write_bytes(b"y")
    assert open_local(folder).sha256 != before


@pytest.mark.parametrize("name", ["openvino_model.xml", "openvino_model.bin", "openvino_tokenizer.xml"])
def test_what_an_ir_folder_lacks_is_named(tmp_path: Path, name: str) -> None:
    folder = tiny.ir_folder(tmp_path / "m")
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name} missing"):
        resolve(str(folder))
    (folder / name).touch()
    with pytest.raises(ModelError, match=f"{name} empty"):
        resolve(str(folder))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"max_position_embeddings": "many"}', "max_position_embeddings"),
        ('{"a": 1}', "max_position_embeddings"),
        ('{"max_position_embeddings": 8, "eos_token_id": "x"}', "eos_token_id"),
        ("{", "not valid JSON"),
        ("[]", "JSON object"),
    ],
)
def test_what_is_wrong_with_its_config_is_named(tmp_path: Path, config: str, words: str) -> None:
    folder = tiny.ir_folder(tmp_path / "m")
    (folder / "config.json").write_text(config)
    with pytest.raises(ModelError, match=words):
        resolve(str(folder))


@pytest.mark.parametrize(
    ("name", "plain"),
    [("SmolLM2-135M-Instruct.Q4_1", "SmolLM2-135M-Instruct.Q4_1"), ("a b/c", "a-b-c"), ("größe", "groe-"), ("-x-", "x")],
)
def test_ids_are_printable(name: str, plain: str) -> None:
    assert printable_id(name).startswith(plain)


def test_ids_of_other_scripts_differ() -> None:
    assert printable_id("смол") != printable_id("малый")
    assert printable_id("смол").startswith("model-")
    assert printable_id("é") == "e"
    assert printable_id("\udcff").startswith("model-")


def test_what_has_yet_to_be_pulled_is_not_here_and_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "home"))
    assert find_here("smollm2") is None
    assert find_here("hf:some/thing") is None
    path = made(tmp_path / "m.gguf")
    here = find_here(str(path))
    assert here is not None
    assert here.path == path
    assert not (tmp_path / "home" / "models" / "smollm2").exists()
