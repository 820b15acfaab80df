"""An interrupt keeps what was measured, and a second run goes on from there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headway.compare.speed.journal import Journal
from headway.compare.speed.plan import CONSTANT, STREAMS, Content, Limits, Plan, Point
from headway.compare.speed.run import PointRun, run_plan
from headway.compare.speed.synthetic import Scale
from headway.compare.targets.name import parse_target
from headway.compare.targets.opened import opened
from headway.errors import UsageError

from ..endpoint import FakeServer, serving
from ..records import success

HEADING = {"target": "x", "plan": {"seed": 3}}


def run(plan: Plan, journal: Path | None, server: FakeServer, interrupt_after: int | None = None) -> list[PointRun]:
    """Interrupted once so many requests have ended."""

    async def measured() -> list[PointRun]:
        interrupted = asyncio.Event()

        def progress(point: Point, ended: int, seconds: float) -> None:
            if interrupt_after is not None and ended >= interrupt_after:
                interrupted.set()

        async with serving(server), opened([parse_target(f"{server.url}#fake")]) as (target,):
            return await run_plan(plan, target, Scale(), Journal(journal, HEADING), interrupted, progress)

    return asyncio.run(measured())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = Journal(path, HEADING)
    record = success(100.0, 1.0, 0.5, 3)
    first.note(0, 4, record, begin=90.0)
    first.leave(0, 12.5, is_done=False)
    first.close()
    past = Journal(path, HEADING).past(0)
    again = past.records[4]
    assert (past.seconds, past.is_done) == (12.5, False)
    assert (again.intended, again.chunk_times, again.outcome) == (10.0, [11.0, 11.5, 12.0], "success")
    assert (again.output_tokens, again.ttft, again.tpot) == (record.output_tokens, record.ttft, record.tpot)


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = Plan((Point(STREAMS, 1), Point(STREAMS, 2)), Limits(requests=8), Content())
    server = FakeServer(gap=0.02)
    begun = run(plan, tmp_path / "j", server, interrupt_after=3)
    assert not all(point.is_whole for point in begun)
    kept = sum(record.succeeded for point in begun for record in point.records)
    assert kept >= 3
    server = FakeServer()
    whole = run(plan, tmp_path / "j", server)
    assert [sum(record.succeeded for record in point.records) for point in whole] == [8, 8]
    assert all(point.is_whole for point in whole)
    assert len(server.seen) == 16 - kept
    server = FakeServer()
    again = run(plan, tmp_path / "j", server)
    assert [point.seconds for point in again] == pytest.approx([point.seconds for point in whole], abs=1e-5)
    assert server.seen == []  # nothing is left to do


def test_an_open_loop_goes_on_in_its_timetable(tmp_path: Path) -> None:
    plan = Plan((Point(CONSTANT, 50.0),), Limits(requests=60), Content())
    (begun,) = run(plan, tmp_path / "j", FakeServer(), interrupt_after=5)
    (whole,) = run(plan, tmp_path / "j", FakeServer())
    assert len(begun.records) < 60
    assert whole.is_whole
    times = [record.intended for record in whole.records]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(60 / 50)
    assert len(times) >= 58  # one or two may have been due while nobody was there


def test_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = Journal(path, HEADING)
    first.note(0, 0, success(0.0, 1.0, 0.5, 3), begin=0.0)
    first.close()
    path.write_text(path.read_text() + '{"point": 0, "number": 1, "rec')
    second = Journal(path, HEADING)
    assert list(second.past(0).records) == [0]
    second.note(0, 1, success(0.0, 1.0, 0.5, 3), begin=0.0)
    second.close()
    assert list(Journal(path, HEADING).past(0).records) == [0, 1]
    assert Journal(path, HEADING).past(0).seconds == 2.0  # it never came to a line of its own


def test_another_measurements_journal_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "j", HEADING).close()
    with pytest.raises(UsageError, match="another measurement"):
        Journal(tmp_path / "j", HEADING | {"target": "y"})
    (tmp_path / "k").write_text("hello\n")
    with pytest.raises(UsageError, match="no journal"):
        Journal(tmp_path / "k", HEADING)
    with pytest.raises(UsageError, match="--journal"):
        Journal(tmp_path / "no" / "j", HEADING)


def test_its_heading_can_be_read_alone(tmp_path: Path) -> None:
    Journal(tmp_path / "j", HEADING).close()
    assert Journal.heading_of(tmp_path / "j") == HEADING
    assert Journal.heading_of(tmp_path / "nothing") is None
