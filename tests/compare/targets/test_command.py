"""`headway compare TARGET ...` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import CommandLine

from ..endpoint import FakeServer, threaded


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "160")
    return CommandLine("compare", tmp_path, monkeypatch, capsys)


def test_targets_of_both_apis_stand_side_by_side_with_their_prices(compare: CommandLine) -> None:
    with threaded(FakeServer(tokens=10, gap=0.01)) as server:
        chat, messages = f"{server.url}#fake", f"{server.url}/v1/messages#fake@fast"
        (compare.folder / "p.toml").write_text(f'currency = "EUR"\n["{messages}"]\ninput = 1000\noutput = 2000\n')
        done = compare(chat, messages, "--seconds", "0.2", "--prices", "p.toml", "--json", "o.json")
    assert done.status == 0, done.stderr
    found = compare.report()
    assert list(found["targets"]) == [chat, messages]
    for target in found["targets"].values():
        assert target["failure"] is None
        assert target["requests"]["failed"] == 0
        assert target["output_tokens"]["mean"] == 10
        assert target["tokens_per_second_per_user"]["p50"] > 0
    assert found["targets"][chat]["price_per_million"] is None
    priced = found["targets"][messages]
    requests = priced["requests"]["succeeded"]
    assert priced["spent"] == pytest.approx(requests * (8 * 1000 + 10 * 2000) / 1e6)
    assert priced["spent_per_million_output_tokens"] == pytest.approx(2800)
    assert priced["served_as_asked"] == requests
    assert "EUR/M" in done.stdout and "1000, 2000" in done.stdout


def test_modes_of_a_running_headway(compare: CommandLine) -> None:
    with threaded(FakeServer()) as server:
        done = compare("standard", "fast", "--url", server.url, "--seconds", "0.2", "--json", "o.json")
        tiers = {body["service_tier"] for body in server.seen}
    assert done.status == 0, done.stderr
    assert tiers == {"default", "priority"}
    assert list(compare.report()["targets"]) == ["standard", "fast"]
    assert "had the server to itself" in done.stdout


def test_one_that_cannot_be_measured_does_not_keep_the_others_from_it(compare: CommandLine) -> None:
    with threaded(FakeServer(model="fake")) as server:
        good, bad = f"{server.url}#fake", f"{server.url}#other"
        done = compare(good, bad, "http://127.0.0.1:9#m", "--seconds", "0.2", "--json", "o.json")
    assert done.status == 0, done.stderr
    targets = compare.report()["targets"]
    assert targets[good]["failure"] is None
    assert "no model 'other'" in targets[bad]["failure"]
    assert "can't be measured" in targets["http://127.0.0.1:9#m"]["failure"]
    assert targets[bad]["requests"]["sent"] == 0
    assert "Note: not measured: " in done.stdout


def test_if_none_can_be_measured_it_is_an_error(compare: CommandLine) -> None:
    done = compare("http://127.0.0.1:9#m", "--seconds", "0.2")
    assert done.status == 1
    assert done.stderr.splitlines()[-1].startswith("headway: http://127.0.0.1:9#m can't be measured")


def test_a_tier_that_was_not_served_is_shown_up(compare: CommandLine) -> None:
    with threaded(FakeServer(headway=True)) as server:
        done = compare(f"{server.url}#fake@flex", f"{server.url}#fake@fast", "--seconds", "0.2")
    assert done.status == 0, done.stderr
    assert "#fake@fast: 0 of" in done.stdout  # it serves only "priority" as fast
    assert "#fake@flex: 0 of" not in done.stdout


def test_keys_are_shown_nowhere(compare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_API_KEY", "sk-secret")
    with threaded(FakeServer(key="right")) as wrong, threaded(FakeServer(key="sk-secret")) as right:
        done = compare(f"{wrong.url}#fake", f"{right.url}#fake", "--seconds", "0.2", "--json", "o.json")
    assert done.status == 0, done.stderr
    assert "the API key is refused" in done.stdout
    for text in (done.stdout, done.stderr, (compare.folder / "o.json").read_text()):
        assert "sk-secret" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fast", "smollm2", "qwen"], "no more"),
        (["smollm2", "qwen"], "'qwen' is no target"),
        (["smollm2", "http://h#m"], "'smollm2' is no target"),
        (["openai:gpt"], "OPENAI_API_KEY"),
        (["opanai:gpt"], "'opanai:gpt' is no target"),
        (["http://h#m", "--url", "http://h"], "name some"),
        (["http://h#m", "--spark", "none"], "--spark"),
        (["http://h#m", "--streams", "0"], "--streams"),
        (["http://h#m", "--seconds", "0"], "--seconds"),
        (["--prices", "p.toml"], "--prices is for targets"),
        (["http://h#m", "--prices", "p.toml"], "p.toml can't be read"),
    ],
)
def test_mistakes_are_one_line(compare: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = compare(*words)
    assert done.status == 2
    assert done.stderr.startswith("headway: ") and done.stderr.count("\n") == 1
    assert says in done.stderr
