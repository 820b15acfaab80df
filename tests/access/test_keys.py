"""Who a request is from."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.datastructures import Headers

from headway.access.commands import new_key_command
from headway.access.keys import Caller, Keyring, hash_of, keyring, new_key
from headway.config import KeySettings, Settings, load
from headway.errors import RequestError, UsageError
from headway.modes import ModeName

ALICE, BOB = new_key(), new_key()
KEYS = {"alice": KeySettings(hash=hash_of(ALICE)), "bob": KeySettings(hash=hash_of(BOB), modes=("standard",))}
ADDRESS = "192.0.2.7"


def name(keys: Keyring, **headers: str) -> str:
    return keys.caller(Headers({key.replace("_", "-"): value for key, value in headers.items()}), ADDRESS).name


def test_keys_are_long_and_never_the_same() -> None:
    assert ALICE != BOB and len(ALICE) > 40 and ALICE.startswith("hw-")
    assert ALICE not in str(KEYS)


def test_both_headers_are_read_and_either_will_do() -> None:
    keys = Keyring(KEYS, required=True)
    assert name(keys, authorization=f"Bearer {ALICE}") == "alice"
    assert name(keys, authorization=f"bearer  {BOB} ") == "bob"
    assert name(keys, x_api_key=ALICE) == "alice"
    assert name(keys, x_api_key="none", authorization=f"Bearer {BOB}") == "bob"


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "No API key was sent"),
        ({"authorization": f"Basic {ALICE}"}, "holds no key"),
        ({"authorization": "Bearer "}, "holds no key"),
        ({"authorization": f"Bearer {ALICE[:-1]}"}, "not known"),
        ({"x_api_key": ALICE + "x"}, "not known"),
        ({"x_api_key": hash_of(ALICE)}, "not known"),
        ({"x_api_key": "\xff\xfe"}, "not known"),
    ],
)
def test_what_is_no_key_is_refused(headers: dict[str, str], words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        name(Keyring(KEYS, required=True), **headers)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert ALICE[:-1] not in caught.value.message


def test_without_need_of_a_key_an_unknown_one_is_nobodys() -> None:
    keys = Keyring(KEYS, required=False)
    assert name(keys, x_api_key=ALICE) == "alice"
    nobody = keys.caller(Headers({}), ADDRESS)
    assert nobody == Caller("", ADDRESS, ADDRESS)
    some = keys.caller(Headers({"x-api-key": "none"}), ADDRESS)
    assert (some.name, some.counted_as) == ("", ADDRESS)
    assert some.share not in ("none", ADDRESS), "fairness tells them apart, limits don't"


def test_a_key_is_needed_as_soon_as_there_is_one() -> None:
    without, some = Settings(), Settings(keys=KEYS)
    assert not keyring(without, loopback=True).required
    assert keyring(some, loopback=True).required
    assert keyring(some, loopback=False).required
    assert not keyring(some.with_overrides({"server.allow_without_key": True}), loopback=False).required


def test_no_key_and_other_machines_don_t_go_together() -> None:
    with pytest.raises(UsageError, match=r"headway key new --write.*--allow-without-key") as caught:
        keyring(Settings().with_overrides({"server.host": "0.0.0.0"}), loopback=False)
    assert "0.0.0.0" in str(caught.value)
    assert not keyring(Settings().with_overrides({"server.allow_without_key": True}), loopback=False).required


def test_a_key_may_be_for_some_modes_alone() -> None:
    Caller("bob", "bob", "bob", ("standard",)).check_mode(ModeName.FAST)  # like a limit of 0: the quota says so
    with pytest.raises(RequestError, match="may not ask for standard, only for fast") as caught:
        Caller("carol", "carol", "carol", ("fast",)).check_mode(ModeName.STANDARD)
    assert caught.value.status == 403


# --- headway key new --------------------------------------------------------------------------------------------------------


def test_a_new_key_is_printed_once_and_its_toml_makes_it_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_key_command("alice", "fast", tmp_path / "headway.toml", write=False)
    out, err = capsys.readouterr()
    key = out.strip()
    assert key not in err
    (tmp_path / "headway.toml").write_text(err[err.index("[keys") : err.index("The key, shown")])
    settings = load(tmp_path / "headway.toml")
    assert settings.keys["alice"].modes == ("fast",)
    assert name(keyring(settings, loopback=True), x_api_key=key) == "alice"


@pytest.mark.parametrize("before", [None, "", "[server]\nport = 9", "[server]\nport = 9\n"])
def test_write_adds_to_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str | None) -> None:
    file = tmp_path / "headway.toml"
    if before is not None:
        file.write_text(before)
    for who in ("alice", "b.o@b", None):
        new_key_command(who, None, file, write=True)
    keys = capsys.readouterr().out.split()
    settings = load(file)
    assert settings.server.port == (9 if before else 8000)
    assert [name(keyring(settings, loopback=True), x_api_key=key) for key in keys] == list(settings.keys)
    assert list(settings.keys)[:2] == ["alice", "b.o@b"]


@pytest.mark.parametrize(
    ("who", "modes", "words"),
    [("alice", None, "already has a key named alice"), ("a b", None, "keys.a b"), ("bob", "fast,quick", "'quick'")],
)
def test_what_can_t_be_a_key(tmp_path: Path, who: str, modes: str | None, words: str) -> None:
    file = tmp_path / "headway.toml"
    new_key_command("alice", None, file, write=True)
    before = file.read_text()
    with pytest.raises(UsageError, match=words):
        new_key_command(who, modes, file, write=True)
    assert file.read_text() == before
