"""`headway compare` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def headway(*arguments: str, seconds: float = 240.0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway", "compare", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def test_an_unknown_model_is_one_line() -> None:
    done = headway("nonesuch", "--streams", "1", "--seconds", "1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("headway: ")
    assert "nonesuch" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].count("headway: ") == 1
    assert "Traceback" not in done.stderr


def test_an_address_where_nobody_answers_is_one_line() -> None:
    done = headway("--url", "http://127.0.0.1:9", "--seconds", "1")
    assert done.returncode == 1
    assert done.stderr == "headway: http://127.0.0.1:9 does not answer; is the server running?\n"


@pytest.mark.model
@pytest.mark.alone
def test_the_real_model_end_to_end() -> None:
    done = headway("--streams", "4", "--seconds", "12", "--json", "-")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # nothing else on stdout
    assert report["modes"].keys() == {"standard", "fast", "spark"}
    for mode in report["modes"].values():
        assert mode["errors"] == 0
        assert mode["tokens_per_second"] > 0
        assert 0 <= mode["attainment"] <= 1
        assert mode["cost_x"] > 0
        assert mode["output_tokens_from"] == "usage"
    assert report["fast_requests_served_as_fast"] == report["modes"]["fast"]["requests"] > 0
    assert report["same_text"] is True
    assert report["same_text_details"]["by"] == "tokens"
    assert 0 < report["engine_busy"]["alone"] <= 1.05  # the counter moves in steps, the window doesn't
    assert report["total_tokens_per_second"]["with_fast"] > 0
    assert report["versions"]["headway"]
    assert "Same text: yes" in done.stderr
