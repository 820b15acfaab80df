"""K: what a load generator reports about a server whose timings are known. Their sizes are a fraction of the reports', so that
they take seconds; only the server's waits bound them from below."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from compare.endpoint import FakeServer, threaded

WARM_UP = 3
"""Requests before the load: one on trial, and two to learn how the endpoint counts."""


@pytest.fixture
def headway(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(request.param, tmp_path, monkeypatch, request.getfixturevalue("capsys"))


LOAD = pytest.mark.parametrize("headway", ["load"], indirect=True)
COMPARE = pytest.mark.parametrize("headway", ["compare"], indirect=True)


def measured(headway: CommandLine, *arguments: str) -> dict[str, Any]:
    done = headway(*arguments, "--json", "o.json")
    assert done.status == 0, done.stderr
    report: dict[str, Any] = json.loads((headway.folder / "o.json").read_text())
    return report


@COMPARE
def test_k1_tokens_not_chunks(headway: CommandLine) -> None:
    """Four tokens in each chunk: a rate of chunks would be a quarter of that of tokens."""
    with threaded(FakeServer(tokens=100, per_chunk=4, content_at=0.1, gap=0.004, headway=False)) as server:
        figures = measured(headway, f"{server.url}#fake", "--seconds", "0.4")["targets"][f"{server.url}#fake"]
    assert figures["output_tokens"]["mean"] == 100
    assert figures["output_tokens_from"] == "usage"
    assert figures["tokens_per_chunk"] == 4
    assert figures["ttft_ms"]["min"] >= 99  # a server's sleep may end a clock tick early
    streamed = figures["e2e_ms"]["mean"] - figures["ttft_ms"]["mean"]
    assert figures["tpot_ms"]["mean"] == pytest.approx(streamed / 99, rel=0.01)
    assert figures["itl_ms"]["mean"] == pytest.approx(streamed / 24, rel=0.01)
    assert figures["tokens_per_second_per_user"]["max"] == pytest.approx(1000 / figures["tpot_ms"]["min"], rel=0.01)
    assert figures["peak_output_tokens_per_second"] >= figures["output_tokens_per_second"] > 0


@COMPARE
def test_k1_without_usage_the_count_is_unknown_and_said_so(headway: CommandLine) -> None:
    with threaded(FakeServer(tokens=100, per_chunk=4, usage=False, headway=False)) as server:
        report = measured(headway, f"{server.url}#fake", "--seconds", "0.4")
    figures = report["targets"][f"{server.url}#fake"]
    for name in ("output_tokens", "output_tokens_from", "tpot_ms", "tokens_per_second_per_user", "output_tokens_per_second"):
        assert figures[name] is None
    assert figures["ttft_ms"]["count"] > 0
    assert any("chunks are not tokens" in note for note in report["notes"])


@pytest.mark.model
@LOAD
def test_k1_a_tokenizer_counts_the_joined_text(headway: CommandLine, smollm2: Path) -> None:
    with threaded(FakeServer(tokens=100, per_chunk=4, usage=False, headway=False)) as server:
        report = measured(headway, f"{server.url}#fake", "--requests", "2", "--tokenizer", str(smollm2))
    assert report["output_tokens_from"] == "tokenizer"
    assert report["points"][0]["output_tokens"]["mean"] == 100  # " go" is one token


@LOAD
def test_k3_a_quarter_fails_and_stays_out_of_the_latencies(headway: CommandLine) -> None:
    with threaded(FakeServer(fail_every=4)) as server:
        report = measured(headway, f"{server.url}#fake", "--requests", "40", "--streams", "4")
        assert len(server.seen) == WARM_UP + 40
    (point,) = report["points"]
    assert point["error_rate"] == 0.25
    assert point["requests"] | {"succeeded": 30, "failed": 10} == point["requests"]
    assert point["error_reasons"] == {"HTTP 500: made to fail": 10}
    for name in ("ttft_ms", "e2e_ms", "tpot_ms"):
        assert point[name]["count"] == 30
        assert point[name]["min"] >= 0
    assert any("10 of 40 requests failed (25%)" in note for note in report["notes"])


@LOAD
def test_k3_a_server_that_breaks_off_leaves_successes_and_errors(headway: CommandLine) -> None:
    class Dying(FakeServer):
        async def _refusal(self, request: Any, body: dict[str, Any]) -> Any:
            if len(self.seen) >= WARM_UP + 10:
                request.transport.abort()
            return await super()._refusal(request, body)

    with threaded(Dying()) as server:
        report = measured(headway, f"{server.url}#fake", "--requests", "14")
    (point,) = report["points"]
    assert (point["requests"]["succeeded"], point["requests"]["failed"]) == (10, 4)
    assert point["ttft_ms"]["count"] == 10
    assert point["ttft_ms"]["min"] >= 0
    assert point["output_tokens_per_second"] > 0


@LOAD
def test_k3_requests_in_flight_at_the_end_are_neither_and_are_counted(headway: CommandLine) -> None:
    """Their tokens inside the window are in the total: see compare/speed/test_figures.py, where times are given."""
    with threaded(FakeServer(tokens=20, gap=0.01)) as server:
        report = measured(headway, f"{server.url}#fake", "--seconds", "0.5", "--streams", "2", "--grace", "0")
    (point,) = report["points"]
    requests = point["requests"]
    assert requests["failed"] == 0
    assert requests["sent"] == requests["succeeded"] + requests["unfinished"]
    assert requests["unfinished"] <= 2
    assert point["seconds"] > 0.49


@LOAD
def test_k5_an_open_loop_does_not_wait(headway: CommandLine) -> None:
    """The server stands still for a second. Twenty requests a second are sent all the same, and those of that second wait for
    its end, each from the time at which it should have been sent: 1.05 - 0.05 i seconds for the i-th."""
    with threaded(FakeServer(tokens=4, stall=1.0, stall_from=WARM_UP + 1)) as server:
        report = measured(headway, f"{server.url}#fake", "--constant", "20", "--requests", "40")
        assert server.stalled >= 10  # twenty, if nothing but the server stands still
    (point,) = report["points"]
    assert point["requests"]["succeeded"] == 40
    assert point["ttft_ms"]["max"] >= 990
    assert point["ttft_ms"]["p99"] >= 900
    assert point["ttft_ms"]["mean"] >= 250
