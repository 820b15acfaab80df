"""`headway load` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cases.client import wait_for
from commandline import CommandLine

from ..endpoint import FakeServer, threaded


@pytest.fixture
def headway_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine("load", tmp_path, monkeypatch, capsys)


def test_one_point_shows_its_distributions(headway_load: CommandLine) -> None:
    with threaded(FakeServer(tokens=6, per_chunk=2, gap=0.005)) as server:
        done = headway_load(
            f"{server.url}#fake", "--requests", "4", "--goodput", "ttft:60000", "tpot:60000", "--json", "o.json"
        )
    assert done.status == 0, done.stderr
    for word in ("TTFT (ms)", "TPOT (ms)", "ITL (ms)", "end to end (ms)", "p99", "4 succeeded, 0 failed", "Goodput"):
        assert word in done.stdout
    found = headway_load.report()
    (point,) = found["points"]
    assert point["requests"]["succeeded"] == 4
    assert (point["output_tokens"]["mean"], point["tokens_per_chunk"]) == (6, 2)
    assert point["goodput_share"] == 1.0
    assert (found["output_tokens_from"], found["interrupted"], found["model"]) == ("usage", False, "fake")
    assert found["command"].startswith(f"headway load '{server.url}#fake' --requests 4 --seed ")
    assert found["command"].endswith("--goodput 'ttft:60000 tpot:60000'")


def test_a_sweep_shows_a_line_for_each_level(headway_load: CommandLine) -> None:
    with threaded(FakeServer()) as server:
        done = headway_load(f"{server.url}#fake", "--streams", "1,3", "--requests", "6", "--json", "-")
    assert done.status == 0, done.stderr
    assert [point["load"] for point in json.loads(done.stdout)["points"]] == [
        {"kind": "streams", "value": 1},
        {"kind": "streams", "value": 3},
    ]
    assert "streams" in done.stderr and "p50 ms" in done.stderr


@pytest.mark.parametrize("kind", ["--constant", "--poisson", "--bursty"])
def test_open_loops_send_all_of_their_requests(headway_load: CommandLine, kind: str) -> None:
    with threaded(FakeServer()) as server:
        done = headway_load(f"{server.url}#fake", kind, "100", "--requests", "20", "--json", "o.json")
    assert done.status == 0, done.stderr
    (point,) = headway_load.report()["points"]
    assert point["requests"]["succeeded"] == 20
    assert point["sent_late_ms"] >= 0


def test_a_trace_is_replayed(headway_load: CommandLine) -> None:
    lines = [{"at": 10 + i / 50, "prompt_tokens": 20, "output_tokens": 3 + i} for i in range(5)]
    (headway_load.folder / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with threaded(FakeServer()) as server:
        done = headway_load(f"{server.url}#fake", "--trace", "t.jsonl", "--times", "2")
        sent = [body["max_tokens"] for body in server.seen[-5:]]
    assert done.status == 0, done.stderr
    assert sent == [3, 4, 5, 6, 7]


def test_prompts_from_a_file(headway_load: CommandLine) -> None:
    (headway_load.folder / "p.txt").write_text("First\nSecond\n")
    with threaded(FakeServer()) as server:
        done = headway_load(f"{server.url}#fake", "--prompts", "p.txt", "--requests", "3", "--output-tokens", "5", "--may-end")
        sent = [(body["messages"][0]["content"], body["max_tokens"], "ignore_eos" in body) for body in server.seen[-3:]]
    assert done.status == 0, done.stderr
    assert sent == [("First", 5, False), ("Second", 5, False), ("First", 5, False)]
    assert "sent more than once" in done.stdout


def test_the_anthropic_api_is_loaded_alike(headway_load: CommandLine) -> None:
    with threaded(FakeServer(tokens=5)) as server:
        done = headway_load(f"{server.url}/v1/messages#fake@fast", "--requests", "3", "--json", "o.json")
    assert done.status == 0, done.stderr
    (point,) = headway_load.report()["points"]
    assert point["output_tokens"]["mean"] == 5
    assert point["cached_prompt_tokens"] == 6


def test_refusals_are_counted_and_sent_again_only_on_demand(headway_load: CommandLine) -> None:
    busy = {"busy_headers": {"retry-after-ms": "1"}}
    with threaded(FakeServer(fail_every=1, **busy)) as server:
        done = headway_load(f"{server.url}#fake", "--requests", "3")
    assert done.status == 1
    assert done.stderr.endswith("can't be measured: HTTP 500: made to fail\n")
    with threaded(FakeServer(busy=2, **busy)) as server:
        done = headway_load(f"{server.url}#fake", "--requests", "3", "--retries", "2")
    assert done.status == 0, done.stderr


def test_without_usage_the_count_is_unknown_and_the_report_says_so(headway_load: CommandLine) -> None:
    with threaded(FakeServer(usage=False)) as server:
        done = headway_load(f"{server.url}#fake", "--requests", "3", "--json", "o.json")
    found = headway_load.report()
    assert (found["output_tokens_from"], found["points"][0]["output_tokens_per_second"]) == (None, None)
    assert "chunks are not tokens" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ttft:500"], "name one target"),
        (["http://h#a", "http://h#b"], "name one target"),
        (["smollm2"], "is no target"),
        (["fast"], "--url"),
        (["openai:gpt"], "OPENAI_API_KEY"),
        (["http://h#m", "--streams", "2", "--poisson", "3"], "not both"),
        (["http://h#m", "--streams", "none"], "--streams"),
        (["http://h#m", "--seconds", "0"], "--seconds"),
        (["http://h#m", "--requests", "0"], "--requests"),
        (["http://h#m", "--percentiles", "50,x"], "--percentiles"),
        (["http://h#m", "--goodput", "fast"], "NAME:MILLISECONDS"),
        (["http://h#m", "--prompts", "nothing.txt"], "nothing.txt can't be read"),
        (["http://h#m", "--trace", "nothing.txt"], "nothing.txt can't be read"),
        (["http://h#m", "--json", "no/o.json"], "doesn't exist"),
    ],
)
def test_mistakes_are_one_line(headway_load: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = headway_load(*words)
    assert done.status == 2
    assert done.stderr.startswith("headway: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


def test_a_server_that_is_not_there_is_one_line(headway_load: CommandLine) -> None:
    done = headway_load("http://127.0.0.1:9#m", "--requests", "1")
    assert done.status == 1
    assert done.stderr.splitlines()[-1].startswith("headway: http://127.0.0.1:9#m can't be measured: ")


def test_an_interrupt_keeps_what_was_measured_and_the_same_command_goes_on(headway_load: CommandLine, tmp_path: Path) -> None:
    with threaded(FakeServer(gap=0.02)) as server:
        words = [f"{server.url}#fake", "--requests", "12", "--json", "o.json", "--journal", "j.jsonl"]
        command = [sys.executable, "-m", "headway", "load", *words]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(server.seen) >= 6)
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert "the same command goes on from there" in stderr
        assert "Interrupted after" in stdout
        begun = headway_load.report()
        assert begun["interrupted"] is True
        done = begun["points"][0]["requests"]["succeeded"]
        assert 0 < done < 12
        seen = len(server.seen)
        server.gap = 0.0
        assert headway_load(*words).status == 0
        assert len(server.seen) - seen <= 3 + 12 - done  # a trial, two prompts to learn how it counts, and what was left
    whole = headway_load.report()
    assert whole["interrupted"] is False
    assert whole["points"][0]["requests"]["succeeded"] == 12
    assert whole["settings"]["seed"] == begun["settings"]["seed"]
