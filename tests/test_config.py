"""headway.toml: defaults, overrides, and an error that names the key for everything else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from headway.config import Settings, load, parse_bytes
from headway.errors import UsageError

HASH = "sha256:" + "0" * 64
EXAMPLE = Path(__file__).parent.parent / "headway.example.toml"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "headway.toml"
    path.write_text(text, encoding="utf-8")
    return path


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            pairs |= flat(value, f"{prefix}{key}.")
        else:
            pairs[prefix + key] = value
    return pairs


def fields_of(model: type[BaseModel], prefix: str = "") -> set[str]:
    names: set[str] = set()
    for name, field in model.model_fields.items():
        kind = field.annotation
        if get_origin(kind) is dict:  # the example has one of them, with a name
            names |= fields_of(get_args(kind)[1], f"{prefix}{name}.alice.")
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= fields_of(kind, f"{prefix}{name}.")
        else:
            names.add(prefix + name)
    return names


def test_without_a_file_there_are_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load() == Settings()


def test_headway_toml_in_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "[server]\nport = 9000\n")
    monkeypatch.chdir(tmp_path)
    assert load().server.port == 9000


def test_the_example_file_loads_as_the_defaults() -> None:
    assert load(EXAMPLE) == Settings()


def test_the_example_file_documents_every_key_and_no_other(tmp_path: Path) -> None:
    text = re.sub(r"^# (\w+ = |\[)", r"\1", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(flat(tomllib.loads(text))) == fields_of(Settings)
    shown = flat(load(written(tmp_path, text)).model_dump())
    defaults = flat(Settings().model_dump())
    assert {key: shown[key] for key, value in defaults.items() if value is not None} == {
        key: value for key, value in defaults.items() if value is not None
    }


def test_every_key_of_the_example_has_words_before_it() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    sections = [i for i, line in enumerate(lines) if line.startswith("[")]
    assert all(lines[i + 1].startswith("# ") and " = " not in lines[i + 1] for i in sections)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\nprot = 1\n", ["server.prot", "server.port"]),
        ("[sever]\nport = 1\n", ["sever", "server"]),
        ("[modes.quick]\npace = 1.0\n", ["modes.quick", "standard, fast"]),
        ("[modes.fast]\npacee = 1.0\n", ["modes.fast.pacee", "modes.fast.pace"]),
        ("[server]\nport = 70000\n", ["server.port", "70000", "65535"]),
        ('[server]\nport = "80"\n', ["server.port", "'80'", "integer"]),
        ("[server]\nport = true\n", ["server.port", "True", "integer"]),
        ("[server]\nhost = 3\n", ["server.host", "3", "string"]),
        ("[server]\ncors_origins = [3]\n", ["server.cors_origins.0", "3", "string"]),
        ("server = 3\n", ["server", "section"]),
        ('[engine]\nprecision = "f8"\n', ["engine.precision", "'f8'", "'f32' or 'bf16'"]),
        ('[engine]\nkv_memory = "2 cows"\n', ["engine.kv_memory", "'2 cows'", '"2GB"']),
        ("[engine]\nkv_memory = 0\n", ["engine.kv_memory", "0", "greater than 0"]),
        ("[engine]\nthreads = 0\n", ["engine.threads", "0"]),
        ("[modes.standard]\npace = nan\n", ["modes.standard.pace", "nan", "finite"]),
        ("[modes.fast]\nspeedup = 0.5\n", ["modes.fast.speedup", "0.5"]),
        ("[scheduler]\nmax_rows = 0\n", ["scheduler.max_rows", "0"]),
        ('[model]\nid = "смол"\n', ["model.id", "смол"]),
        ('[keys."a b"]\nhash = ""\n', ["keys.a b", "letter"]),
        ("[keys.alice]\n", ["keys.alice.hash", "missing"]),
        ('[keys.alice]\nhash = "hw-x"\n', ["keys.alice.hash", "'hw-x'", "headway key new"]),
        (
            f'[keys.alice]\nhash = "{HASH}"\nmodes = ["quick"]\n',
            ["keys.alice.modes.0", "'quick'", "'standard', 'fast' or 'spark'"],
        ),
        (f'[keys.alice]\nhash = "{HASH}"\nmode = []\n', ["keys.alice.mode;", "keys.alice.modes"]),
        (f'[keys.alice]\nhash = "{HASH}"\n[keys.alice.fast]\nrequest = 1\n', ["keys.alice.fast.requests"]),
        ("keys = 3\n", ["keys", "section"]),
        ("[limits.fast]\nrequests = -1\n", ["limits.fast.requests", "-1"]),
        ('[limits]\nstorage = "disk"\n', ["limits.storage", "'disk'", "redis://"]),
        ('[ledger]\nurl = "mysql://x"\n', ["ledger.url", "postgresql://"]),
        ("[prices]\ninput = -0.1\n", ["prices.input", "-0.1"]),
        ("[server]\nport = \n", ["line 2"]),
        ("[server]\nport = 1\nport = 2\n", ["line 3"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_a_missing_file_is_an_error_only_if_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "nowhere.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "headway.toml"
    path.write_bytes(b"[server]\nhost = '\xff'\n")
    with pytest.raises(UsageError, match=r"not UTF-8 text .at line 2"):
        load(path)


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "headway.toml"
    path.write_bytes(b"\xef\xbb\xbf[server]\nport = 9\n")
    assert load(path).server.port == 9


def test_a_whole_number_will_do_for_a_fraction(tmp_path: Path) -> None:
    assert load(written(tmp_path, "[modes.fast]\npace = 30\n")).modes.fast.pace == 30.0


def test_a_template_is_found_beside_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[model]\nchat_template = "t.jinja"\n')
    assert load(path).model.chat_template == tmp_path / "t.jinja"


def test_flags_win_over_the_file_and_none_means_not_given(tmp_path: Path) -> None:
    settings = load(written(tmp_path, "[server]\nport = 9000\n[modes.fast]\npace = 30.0\n"))
    settings = settings.with_overrides({"server.port": 9001, "modes.fast.pace": None, "engine.kv_memory": "1GB"})
    assert (settings.server.port, settings.modes.fast.pace, settings.engine.kv_memory) == (9001, 30.0, 10**9)


def test_a_wrong_flag_is_named() -> None:
    with pytest.raises(UsageError, match=r"the command line: server\.port is -1"):
        Settings().with_overrides({"server.port": -1})


@pytest.mark.parametrize(
    ("text", "number"),
    [("2GB", 2 * 10**9), ("512MiB", 512 * 2**20), ("1.5 gb", 15 * 10**8), ("7B", 7), ("1KiB", 1024), (12, 12)],
)
def test_sizes(text: str | int, number: int) -> None:
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "GB", "2", "-1GB", "2XB", "1e3MB", True, 2.5, None])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        parse_bytes(text)
