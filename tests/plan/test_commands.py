"""`headway plan`, as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commandline import CommandLine

from headway.plan.known import entries


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine("plan", tmp_path, monkeypatch, capsys)


def test_the_table_says_what_fast_costs(plan: CommandLine) -> None:
    done = plan("llama-3.1-70b", "--gpu", "h200", "--precision", "fp8", "--price-per-hour", "3")
    assert done.status == 0
    assert "2.5x costs" in done.stdout
    assert "6x the price buys" in done.stdout
    assert re.search(r"standard: \d+ tokens/s for each of \d+ on \d, \$\d\.\d\d a million", done.stdout)
    assert "those of a model, chip and engine it never saw" in done.stdout


def test_json_has_the_frontier_the_modes_and_what_limits_each(plan: CommandLine) -> None:
    arguments = ("gpt-oss-120b", "--gpu", "b200", "--tp", "1", "--tp", "4", "--acceptance", "0.6", "--json", "-")
    found = json.loads(plan(*arguments).stdout)
    assert {point["tp"] for point in found["points"]} == {1, 4}
    assert found["fast"]["tokens_s_per_user"] >= 2.5 * found["standard"]["tokens_s_per_user"]
    speeds = [point["tokens_s_per_user"] for point in found["frontier"]]
    assert speeds == sorted(speeds)
    for point in found["points"]:
        assert sum(point["parts"].values()) == pytest.approx(1, abs=0.001)
        assert point["limit"] == max(point["parts"], key=point["parts"].get)
    assert found["speculation"]["tokens_per_step"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert found["speculation"]["frontier"][-1]["tokens_s_per_user"] > speeds[-1]


def test_a_price_of_an_hour_becomes_one_of_a_million_tokens(plan: CommandLine) -> None:
    found = json.loads(plan("qwen3-32b", "--gpu", "h100", "--price-per-hour", "2", "--json", "-").stdout)
    point = found["standard"]
    assert point["price_per_million"] == pytest.approx(2 * 1e6 / point["tokens_s_per_gpu"] / 3600, rel=0.001)


def test_pictures_and_a_page_of_their_own(plan: CommandLine) -> None:
    done = plan("qwen3-32b", "--gpu", "h100", "--acceptance", "0.7", "--plots", "plots", "--report", "plan.html")
    assert done.status == 0
    drawn = ElementTree.parse(plan.folder / "plots" / "curve.svg").getroot()
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4 + 2  # splits, the best of them, and the best with drafts
    page = (plan.folder / "plan.html").read_text("utf-8")
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "2.5x costs" in page
    assert "prefers-color-scheme:dark" in page


def test_a_config_of_ones_own(plan: CommandLine) -> None:
    (plan.folder / "config.json").write_text(json.dumps(entries()["qwen3-8b"]["config"]))
    named = json.loads(plan("config.json", "--gpu", "h100", "--json", "-").stdout)
    known = json.loads(plan("qwen3-8b", "--gpu", "h100", "--json", "-").stdout)
    assert named["points"] == known["points"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("llama-3.1-7b", "--gpu", "h100"), "did you mean llama-3.1"),
        (("llama-3.1-8b", "--gpu", "h300"), "did you mean H200"),
        (("llama-3.1-405b", "--gpu", "h100"), "190 GiB too few; what would fit: --tp 16"),
        (("llama-3.1-8b", "--gpu", "h100", "--precision", "fp3"), "precision fp3 isn't known"),
        (("llama-3.1-8b", "--gpu", "h100", "--engine", "tgi"), "engine tgi isn't known"),
        (("llama-3.1-8b", "--gpu", "h100", "--speed", "1"), "--speed has to be above 1"),
        (("llama-3.1-8b", "--gpu", "h100", "--acceptance", "1.5"), "--acceptance has to be 0 to 1"),
        (("llama-3.1-8b", "--gpu", "h100", "--osl", "1"), "--osl has to be at least 2"),
        (("llama-3.1-8b", "--gpu", "h100", "--tp", "0"), "--tp has to be 1 to 72"),
        (("llama-3.1-8b", "--gpu", "h100", "--report", "none/plan.html"), "No such file"),
    ],
)
def test_what_is_wrong_is_one_line(plan: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    done = plan(*arguments)
    assert done.status == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
