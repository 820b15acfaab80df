"""`headway simulate` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from catalog.tiny import gguf
from commandline import CommandLine

from headway.catalog.local import open_local
from simulate.small import costs

FAST = '{"at": 0, "mode": "fast", "prompt_tokens": 30, "output_tokens": 20}'
UNNAMED = '{"at": 0.1, "prompt_tokens": 30, "output_tokens": 20}'


class Headway(CommandLine):
    """In a folder with a trace and step times, and with an empty home."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__("simulate", folder, monkeypatch, capsys)
        (folder / "costs.json").write_text(json.dumps(costs().to_dict()))
        (folder / "trace.jsonl").write_text(f"{FAST}\n{UNNAMED}\n")
        monkeypatch.setenv("HEADWAY_HOME", str(folder / "home"))

    def report(self, *arguments: str) -> dict[str, object]:
        done = self(*arguments, "--costs", "costs.json", "--json", "-")
        assert done.status == 0, done.stderr
        assert "simulating" not in done.stderr
        parsed: dict[str, object] = json.loads(done.stdout)
        return parsed


@pytest.fixture
def headway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Headway:
    return Headway(tmp_path, monkeypatch, capsys)


def test_a_trace_gives_a_table(headway: Headway) -> None:
    done = headway("trace.jsonl", "--costs", "costs.json")
    assert done.status == 0, done.stderr
    for words in ("tokens/s per user", "TTFT p99", "goodput", "Promised: standard", "2 requests in", "Step times: costs.json"):
        assert words in done.stdout
    assert done.stderr == "simulating 2 requests\n"


def test_json_alone_on_stdout_with_all_that_the_figures_depend_on(headway: Headway) -> None:
    (headway.folder / "headway.toml").write_text("[modes.fast]\npace = 40.0\n[modes.standard]\npace = 9.0\n")
    arguments = ("--bursty", "5", "--requests", "50", "--fast-share", "0.3", "--kv-blocks", "99")
    report = headway.report(*arguments)
    modes, machine, traffic, settings = (report[key] for key in ("modes", "machine", "traffic", "settings"))
    assert report["requests"] == 50
    assert modes["fast"]["requests"] > 5  # type: ignore[index]
    assert (modes["standard"]["pace"], modes["fast"]["pace"]) == (9.0, 40.0)  # type: ignore[index]
    assert machine["num_blocks"] == 99  # type: ignore[index]
    assert machine["base"] == costs().to_dict()["base"]  # type: ignore[index]
    assert traffic["bursty"] == 5  # type: ignore[index]
    assert settings["modes"]["fast"]["pace"] == 40.0  # type: ignore[index]
    assert headway.report(*arguments) == report


def test_denser_and_shorter_traces(headway: Headway) -> None:
    sparse, dense = (headway.report("trace.jsonl", "--times", times)["seconds"] for times in ("0.001", "10"))
    assert sparse > 100  # type: ignore[operator]
    assert dense < 10  # type: ignore[operator]
    assert headway.report("trace.jsonl", "--requests", "1")["requests"] == 1


def test_a_model_that_was_served_here_is_simulated_as_it_was_measured(headway: Headway) -> None:
    model = headway.folder / "model.gguf"
    model.write_bytes(gguf())
    ladder = costs().to_dict() | {"identity": f"x {open_local(model).sha256} y", "num_blocks": 77, "block_size": 16}
    (headway.folder / "home" / "ladders").mkdir(parents=True)
    (headway.folder / "home" / "ladders" / "a.json").write_text(json.dumps(ladder))
    done = headway("trace.jsonl", "--model", str(model))
    assert done.status == 0, done.stderr
    assert "KV cache 1,232 tokens" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "what is to be simulated? Name a trace, or give one of"),
        (("--poisson", "1", "--bursty", "1"), "what is to be simulated?"),
        (("trace.jsonl", "--poisson", "1"), "a trace or --poisson, not both"),
        (("nowhere.jsonl",), "nowhere.jsonl can't be read: No such file or directory"),
        (("--poisson", "0"), "--poisson is 0; it should be above 0"),
        (("--poisson", "nan"), "--poisson is nan; it should be above 0"),
        (("--bursty", "1", "--cv", "-1"), "--cv is -1; it should be above 0"),
        (("--poisson", "1", "--requests", "0"), "--requests is 0; it should be at least 1"),
        (("--poisson", "1", "--fast-share", "1.5"), "--fast-share is 1.5; it should be from 0 to 1"),
        (("--poisson", "1", "--output-tokens", "0"), "--output-tokens is 0; it should be from 1 to 1,000,000"),
        (("--poisson", "1", "--spread", "9"), "--spread is 9; it should be from 0 to 3"),
        (("trace.jsonl", "--times", "0"), "--times is 0; it should be above 0"),
        (("trace.jsonl", "--noise", "-1"), "--noise is -1; it should be from 0 to 2"),
        (("trace.jsonl", "--acceptance", "2"), "--acceptance is 2; it should be from 0 to 1"),
        (("trace.jsonl", "--kv-blocks", "0"), "--kv-blocks is 0; it should be from 1"),
        (("trace.jsonl", "--model", "smollm2", "--costs", "costs.json"), "--model or --costs, not both"),
        (("trace.jsonl",), "no step times of smollm2 have been measured here: start `headway serve smollm2` once"),
        (("trace.jsonl", "--model", "hf:a/b"), "no step times of hf:a/b have been measured here"),
        (("trace.jsonl", "--costs", "nowhere.json"), "nowhere.json can't be read"),
        (("trace.jsonl", "--costs", "trace.jsonl"), "trace.jsonl is not JSON"),
        (("trace.jsonl", "--costs", "costs.json", "--json", "no/where.json"), "--json: the folder no doesn't exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(headway: Headway, arguments: tuple[str, ...], said: str) -> None:
    done = headway(*arguments)
    assert done.status == 2
    assert done.stdout == ""
    assert done.stderr.startswith("headway: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "should hold a JSON object"),
        ({"base": [[1, 0.1]], "per_context": 0}, "'per_sample' is missing"),
        ({"base": 3, "per_context": 0, "per_sample": 0}, "base should be a list"),
        ({"base": [], "per_context": 0, "per_sample": 0}, "the token counts of base should rise"),
        ({"base": [[2, 0.1], [1, 0.2]], "per_context": 0, "per_sample": 0}, "the token counts of base should rise"),
        ({"base": [[1, 0]], "per_context": 0, "per_sample": 0}, "the seconds of base should be above 0"),
        ({"base": [[1, 0.1]], "per_context": -1, "per_sample": 0}, "should not be negative"),
        ({"base": [[1, 0.1]], "per_context": 0, "per_sample": 0, "num_blocks": "many"}, "num_blocks is 'many'"),
    ],
)
def test_step_times_that_are_none(headway: Headway, data: object, said: str) -> None:
    (headway.folder / "bad.json").write_text(json.dumps(data))
    done = headway("trace.jsonl", "--costs", "bad.json")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("headway: bad.json")
    assert said in done.stderr


def test_clients_of_a_recording_wait_for_their_answers_unless_they_are_told_not_to(headway: Headway) -> None:
    lines, at = [], 0.0
    for _ in range(40):  # one client, on a machine ten times as fast as ours
        lines.append(f'{{"at": {at}, "mode": "standard", "prompt_tokens": 30, "output_tokens": 50, "seconds": 0.06}}')
        at += 0.07
    (headway.folder / "trace.jsonl").write_text("\n".join(lines))
    told = [headway.report("trace.jsonl", *more) for more in ((), ("--clients", "closed"), ("--clients", "open"))]
    waits, also, at_once = (report["seconds"] for report in told)
    assert waits == also > 15  # one after the other
    assert at_once < 6  # type: ignore[operator]


def test_help_shows_the_defaults_that_it_names(headway: Headway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    done = headway("--help")
    assert done.status == 0
    assert "[default: as measured]" in done.stdout
