"""A recording: what the engine loop and the API tell it, as a trace that the simulator reads."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headway.config import ServerSettings
from headway.engines.base import EngineInfo
from headway.errors import RequestError, UsageError
from headway.modes import ModeName
from headway.runtime.api import GenerateRequest, Timing, Usage
from headway.scheduler.cost import CostModel
from headway.scheduler.request import Request
from headway.scheduler.sizes import StepSizes
from headway.scheduler.step import Row, Step, fit
from headway.server import record
from headway.server.app import create_app
from headway.server.record import MachineSeen, Recorder, open_record
from headway.simulate.machine import machine_of_recording
from headway.simulate.trace import MACHINE, Arrival, read_trace
from server.scripted import MODES, World

INFO = EngineInfo(1, 1, 16, 99, 1, 1, exact=True, description="")
TIMING = Timing(queue=0.1, prompt=0.2, completion=1.0, total=1.3)


class Recording:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 100.0
        self.costs = CostModel([(1, 0.01), (8, 0.02)], 1e-6, 1e-5)
        self.recorder = Recorder(open_record(path), MODES, MachineSeen(self.costs, INFO), lambda: self.now)

    def lines(self) -> list[dict[str, Any]]:
        self.recorder.close()
        return [line for text in self.path.read_text().splitlines() if MACHINE not in (line := json.loads(text))]

    def stepped(self, at: float, slower: float, rows: int = 8) -> None:
        """A step of some rows with 30 tokens each has ended, that took so many times as long as expected."""
        standard = ModeName.STANDARD
        requests = [Request(str(n), standard, 10.0, 100.0, 102.0, [1] * 30, 50, num_computed=29) for n in range(rows)]
        step = Step([Row(request, 1, True) for request in requests])
        fit(step, self.costs, StepSizes(self.costs))
        step.changes = False
        self.recorder.stepped(step, at, slower * self.costs.expected(step.observed(1.0)))

    def end(self, name: str, prompt: list[int], *, arrival: float = 100.0, pace: float | None = None, key: str = "") -> None:
        """A standard request that got 11 tokens ends."""
        mode = MODES.base
        request = Request(name, mode.name, pace or mode.pace, arrival, arrival + 2, list(prompt), 50, key=key)
        request.first_token_at = arrival + 0.3
        request.tokens += [1] * 11
        self.recorder.ended(request, "stop", Usage(len(prompt), 11, 4, 0.5, 0.9, request.pace), TIMING)


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    made = Recording(tmp_path / "record.jsonl")
    yield made
    made.recorder.close()


def test_a_line_says_what_was_asked_and_what_came_of_it(recording: Recording) -> None:
    recording.end("a", list(range(70)))
    recording.end("b", list(range(40)), arrival=102.5, pace=33.0)
    first, second = recording.lines()
    asked = {key: first[key] for key in ("mode", "prompt_tokens", "output_tokens", "max_tokens")}
    assert asked == {"mode": "standard", "prompt_tokens": 70, "output_tokens": 11, "max_tokens": 50}
    seen = {key: first[key] for key in ("served", "finish", "cached_tokens", "ttft", "tpot", "attainment")}
    assert seen == {"served": "standard", "finish": "stop", "cached_tokens": 4, "ttft": 0.3, "tpot": 0.1, "attainment": 0.9}
    assert second["at"] - first["at"] == pytest.approx(2.5)
    assert "pace" not in first
    assert second["pace"] == 33.0


def test_it_reads_back_as_the_arrivals_and_the_same_beginnings_have_the_same_ids(recording: Recording) -> None:
    recording.end("late", [*range(24), 7], arrival=101.0)
    recording.end("early", [*range(19), *range(1, 50)])
    recording.lines()
    early, late = read_trace(recording.path)
    assert (early.at, late.at) == (0.0, pytest.approx(1.0))
    asked = (0.0, 68, 11, ModeName.STANDARD, 50, early.prefix, 8)
    assert early == Arrival(*asked, key=early.key, ended=pytest.approx(1.3), drafts_per_step=0.0)  # type: ignore[arg-type]
    assert (len(early.prefix), len(late.prefix)) == (8, 3)
    assert early.prefix[:2] == late.prefix[:2]
    assert early.prefix[2] != late.prefix[2]


def test_ids_of_prompts_tell_nothing_in_another_recording(tmp_path: Path) -> None:
    ids = []
    for name in ("one", "two"):
        recording = Recording(tmp_path / name)
        recording.end("a", list(range(40)))
        ids.append(recording.lines()[0]["prefix"])
    assert ids[0] != ids[1]


def test_a_second_recording_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for _ in range(2):
        recording = Recording(tmp_path / "record.jsonl")
        recording.end("a", [1])
        recording.lines()
    assert len(read_trace(tmp_path / "record.jsonl")) == 2


def test_the_machine_of_the_recording_is_found_again(recording: Recording) -> None:
    expected = recording.costs.seconds(4, 100, 4)
    recording.costs.drift = 1.5  # what the scheduler has learnt by now
    recording.end("a", [1])
    recording.lines()
    machine = machine_of_recording(recording.path)
    assert machine is not None
    assert machine.costs.seconds(4, 100, 4) == pytest.approx(expected)
    assert (machine.noise, machine.slower) == (0.0, ())
    assert (machine.num_blocks, machine.block_size) == (99, 16)
    assert machine.paces == {mode.name: mode.pace for mode in MODES}
    assert len(read_trace(recording.path)) == 1


@pytest.mark.parametrize("most", [3, 1000])
def test_how_slow_the_machine_was_in_each_second(recording: Recording, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(record, "SUM_UP_EVERY", most)
    # Seconds from the first arrival on, at 100.0: one as expected, one without steps, one twice as slow, one uneven.
    for at, slower in ((100.1, 1.0), (100.5, 1.0), (102.1, 2.0), (102.2, 2.0), (102.3, 2.0), (103.5, 1.5), (103.6, 0.5)):
        recording.stepped(at, slower)
    recording.end("a", [1])
    recording.lines()
    machine = machine_of_recording(recording.path)
    assert machine is not None
    assert machine.slower == (0.7, 1.0, 1.4, 0.7)
    assert [machine.slower_at(now) for now in (0.0, 2.9, 3.0, 6.5)] == [0.7, 1.4, 0.7, 1.4]
    if most > 7:  # else the uneven second is summed up in two parts, each with a mean of its own
        assert machine.costs.seconds(8, 240, 8) == pytest.approx(10 / 7 * recording.costs.seconds(8, 240, 8))
        assert machine.noise == pytest.approx(math.sqrt((math.log(1.5) ** 2 + math.log(0.5) ** 2) / 7), abs=1e-4)


def test_sizes_that_took_longer_than_others_are_told_from_seconds_that_did(recording: Recording) -> None:
    for second in range(20):
        slower = 1.0 if second % 2 else 1.4
        recording.stepped(100.2 + second, 0.9 * slower, rows=1)
        recording.stepped(100.4 + second, 1.1 * slower, rows=8)
    recording.end("a", [1])
    recording.lines()
    machine = machine_of_recording(recording.path)
    assert machine is not None
    ratios = [machine.costs.seconds(n) / recording.costs.seconds(n) for n in (1, 8)]
    assert ratios[1] / ratios[0] == pytest.approx(1.1 / 0.9)
    assert [machine.slower[n] / machine.slower[n + 1] for n in range(0, 20, 2)] == pytest.approx([1.4] * 10, rel=0.01)
    assert machine.noise < 0.01


def test_who_asked_is_named_by_a_hash_that_says_nothing_elsewhere(tmp_path: Path) -> None:
    keys = []
    for name in ("one", "two"):
        recording = Recording(tmp_path / name)
        for key in ("secret", "another", "secret"):
            recording.end(key, [1], key=key)
        keys.append([line["key"] for line in recording.lines()])
    assert keys[0][0] == keys[0][2] != keys[0][1]
    assert "secret" not in keys[0]
    assert keys[0][0] != keys[1][0]


def asked_of(recording: Recording, refused: set[ModeName]) -> tuple[World, int]:
    """A fast request to a server whose seats of these modes are taken; its status."""
    world = World()
    world.app = create_app([world.served], ServerSettings(), world.metrics, recorder=recording.recorder)

    def refuse(request: GenerateRequest) -> RequestError | None:
        return RequestError(429, "full", retry_after=1.0) if request.mode in refused else None

    world.generator.refuse = refuse
    body = {"model": "m", "service_tier": "fast", "messages": [{"role": "user", "content": "Hi"}]}
    return world, TestClient(world.app).post("/v1/chat/completions", json=body).status_code


def test_a_refused_request_is_noted_as_it_was_asked_for(recording: Recording) -> None:
    world, status = asked_of(recording, {ModeName.FAST, ModeName.STANDARD})
    assert status == 429
    assert not world.generator.requests
    (line,) = recording.lines()
    assert (line["mode"], line["finish"], line["output_tokens"]) == ("fast", "refused", None)
    assert line["prompt_tokens"] == len("<user>Hi")


def test_a_downgraded_request_asked_for_fast_and_was_served_at_standard(recording: Recording) -> None:
    world, status = asked_of(recording, {ModeName.FAST})
    assert status == 200
    recording.end(world.generator.requests[0].id, [1, 2, 3])
    recording.end("another", [1, 2, 3])
    downgraded, another = recording.lines()
    assert (downgraded["mode"], downgraded["served"]) == ("fast", "standard")
    assert (another["mode"], another["served"]) == ("standard", "standard")


def test_what_was_withdrawn_before_it_began_leaves_no_line(recording: Recording) -> None:
    mode = MODES.fast
    waiting, begun = (Request(name, mode.name, mode.pace, 100.0, 100.3, [1, 2], 50) for name in "ab")
    begun.started_at = 100.1
    for request in (waiting, begun):
        recording.recorder.ended(request, "cancelled", Usage(2, 0, 0, 0.0, 1.0, mode.pace), TIMING)
    (line,) = recording.lines()
    assert (line["finish"], line["output_tokens"], line["ttft"], line["tpot"]) == ("cancelled", 0, None, None)


def test_a_file_that_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written: Is a directory"):
        open_record(tmp_path)


def test_a_full_disk_ends_the_recording_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    class Full(io.StringIO):
        name = "full.jsonl"

        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    recording = Recording.__new__(Recording)
    recording.recorder = Recorder(Full(), MODES, MachineSeen(CostModel([(1, 0.01)], 0.0, 0.0), INFO))
    recording.end("a", [1])
    recording.end("b", [1])
    recording.recorder.close()
    assert [record.getMessage() for record in caplog.records] == [
        "recording has stopped: full.jsonl can't be written: No space left on device"
    ]
