"""The whole comparison against a server with known answers: figures that don't depend on time."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from headway.compare.commands import compare_command
from headway.compare.endpoint import base_url
from headway.compare.report import print_report, to_json
from headway.compare.result import CompareResult
from headway.compare.run import compare
from headway.errors import HeadwayError, UsageError
from headway.modes import ModeName

from .endpoint import FakeServer, serving


def compared(server: FakeServer, model: str | None = None) -> CompareResult:
    async def run() -> CompareResult:
        async with serving(server):
            return await compare(server.url, model, streams=2, seconds=1.2, max_tokens=8)

    return asyncio.run(run())


def printed(result: CompareResult) -> str:
    console = Console(file=io.StringIO(), width=120)
    print_report(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_report_has_the_figures_that_users_script_against() -> None:
    result = compared(FakeServer(gap=0.002, logprobs=True))
    report = json.loads(json.dumps(to_json(result, "headway compare")))
    assert {"machine", "versions", "command", "model", "load", "modes", "total_tokens_per_second"} <= report.keys()
    assert {"same_text", "engine_busy", "samples"} <= report.keys()
    assert report["model"] == "fake"
    assert report["modes"].keys() == {"standard", "fast"}
    for mode in report["modes"].values():
        assert mode["tokens_per_second"] > 0
        assert 0 <= mode["ttft_ms"]["p50"] <= mode["ttft_ms"]["p99"]
        assert mode["attainment"] == pytest.approx(0.75)
        assert mode["errors"] == 0
    assert report["modes"]["standard"]["speed_x"] == 1.0
    assert report["modes"]["standard"]["cost_x"] == 1.0
    assert report["modes"]["fast"]["cost_x"] == pytest.approx(6.0)
    assert report["total_tokens_per_second"]["alone"] > 0
    assert report["total_tokens_per_second"]["with_fast"] > 0
    assert report["same_text"] is True
    assert report["same_text_details"]["by"] == "tokens"
    assert report["engine_busy"]["alone"] > 0
    assert report["notes"] == []
    assert len(report["samples"]["alone"]["total_tokens_per_second"]) >= 2


def test_the_table_names_both_modes_and_what_lies_below() -> None:
    text = printed(compared(FakeServer(gap=0.002)))
    for word in ("standard", "fast", "1.00x", "6.00x", "75.0%", "Same text: yes", "Engine busy", "Model: fake"):
        assert word in text


def test_another_model_behind_fast_is_found_out() -> None:
    result = compared(FakeServer(fast_text=" no", logprobs=True))
    assert result.same_text.same is False
    assert {difference.setting for difference in result.same_text.differences} == {"fast under load", "fast alone"}
    assert result.same_text.differences[0].position == 0
    assert "Same text: no" in printed(result)


def test_a_server_without_usage_has_unknown_tokens_and_the_report_says_so() -> None:
    result = compared(FakeServer(usage=False, headway=False))
    assert result.standard.tokens_per_second is None
    assert result.total_tokens_per_second("alone") is None
    assert any("tokens are unknown" in note for note in result.notes())
    assert result.same_text.same is True


def test_a_server_that_knows_no_fast_is_shown_up() -> None:
    result = compared(FakeServer(headway=False))
    assert result.fast_served == 0
    assert any("served 0 as fast" in note for note in result.notes())
    assert result.cost_x(ModeName.FAST) is None
    assert result.engine_busy("alone") is None


def test_failures_stand_beside_the_latencies() -> None:
    result = compared(FakeServer(fail_every=4))
    assert result.standard.errors > 0
    assert result.standard.ttft_p50 is not None
    assert "requests failed" in printed(result)
    assert result.same_text.same is None  # answers are missing: no proof
    assert "Same text: unknown" in printed(result)


def test_a_server_that_refuses_ignore_eos_and_logprobs_is_measured_without() -> None:
    server = FakeServer(refuses=("ignore_eos", "logprobs"))
    result = compared(server)
    assert result.standard.errors == 0
    assert result.same_text.same is True
    assert result.same_text.by == "text"


def test_a_model_that_is_not_served_is_named_with_those_that_are() -> None:
    with pytest.raises(HeadwayError, match=r"doesn't serve 'other'; it serves fake"):
        compared(FakeServer(), "other")


def test_a_load_that_only_fails_ends_at_once() -> None:
    with pytest.raises(HeadwayError, match="made to fail"):
        compared(FakeServer(fail_every=1))


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "smollm2"])
def test_what_is_no_url_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="write it like"):
        base_url(url)


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"])
def test_a_url_may_end_in_v1(url: str) -> None:
    assert base_url(url) == "http://h:1"


def test_nobody_there_is_one_line() -> None:
    async def closed_url() -> str:
        async with serving(FakeServer()) as server:
            return server.url

    url = asyncio.run(closed_url())
    with pytest.raises(HeadwayError, match="does not answer") as caught:
        compare_command(url=url, streams=1, seconds=1.0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("streams", "seconds"), [(0, 10.0), (-1, 10.0), (1, 0.0), (1, float("nan"))])
def test_numbers_that_make_no_sense_are_usage_errors(streams: int, seconds: float) -> None:
    with pytest.raises(UsageError):
        compare_command(url="http://127.0.0.1:1", streams=streams, seconds=seconds)


def test_a_report_that_could_not_be_written_is_refused_before_the_measuring(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="doesn't exist"):
        compare_command(url="http://127.0.0.1:1", json_path=tmp_path / "no" / "out.json")
