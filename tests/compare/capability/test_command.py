"""`headway compare --suites ...` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import CommandLine

from ..endpoint import FakeServer, threaded


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine("compare", tmp_path, monkeypatch, capsys)


def test_an_endpoint_is_asked_and_reported(compare: CommandLine) -> None:
    with threaded(FakeServer(tokens=10)) as server:
        target = f"{server.url}#fake"
        done = compare(
            *(target, "--suites", "arithmetic,call,chain", "--tasks", "5"),
            *("--json", "o.json", "--report", "r.html", "--journal", "j.jsonl"),
        )
        asked = len(server.seen)
        again = compare(target, "--suites", "arithmetic,call,chain", "--tasks", "5", "--journal", "j.jsonl")
        assert len(server.seen) - asked == 1  # the probe
    assert done.status == 0, done.stderr
    assert again.status == 0, again.stderr
    found = json.loads((compare.folder / "o.json").read_text())
    suites = found["targets"][target]["suites"]
    assert list(suites) == ["arithmetic", "call", "chain", "all"]
    assert suites["all"]["answered"] == 15
    assert suites["all"]["right"] == 0
    assert suites["all"]["seconds_per_correct"] is None
    assert found["targets"][target]["chain"]["mistake_rate"] == 1.0
    assert "none can be relied on" in found["advice"]["all"]["words"]
    assert "<svg" in (compare.folder / "r.html").read_text()
    assert "arithmetic" in done.stdout


def test_failures_of_the_api_are_told_apart(compare: CommandLine) -> None:
    with threaded(FakeServer(tokens=4, fail_every=3)) as server:
        done = compare(f"{server.url}#fake", "--suites", "extraction", "--tasks", "9", "--json", "o.json")
    found = json.loads((compare.folder / "o.json").read_text())
    cell = next(iter(found["targets"].values()))["suites"]["extraction"]
    assert cell["api_failures"] == 3
    assert cell["answered"] == 6
    assert "count neither as right nor as wrong" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--suites", "poetry"], "there is no 'poetry'; there are all, extraction"),
        (["--suites", ","], "--suites names none"),
        (["--report", "r.html"], "say --quick, or --suites all"),
        (["--quick", "--tasks", "0"], "--tasks must be at least 1"),
        (["--quick", "--thinking", "-1"], "--thinking must be at least 0"),
        (["--quick", "--report", "no/such/r.html"], "the folder no/such doesn't exist"),
        (["--quick", "standard", "--url", "http://127.0.0.1:9"], "does not answer"),
    ],
)
def test_what_cannot_be_done_is_one_line(compare: CommandLine, arguments: list[str], said: str) -> None:
    done = compare(*arguments)
    assert done.status != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
