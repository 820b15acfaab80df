"""A load, point by point, against one target."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice

from headway.compare.load import ClosedLoop
from headway.compare.open_loop import OpenLoop
from headway.compare.record import RequestRecord
from headway.compare.speed.journal import Journal, Past, relative
from headway.compare.speed.plan import Limits, Plan, Point
from headway.compare.speed.synthetic import Scale
from headway.compare.stats import Window
from headway.compare.target import Answer, Ask
from headway.compare.targets.endpoint import EndpointTarget

Progress = Callable[[Point, int, float], None]
"""Told the point, how many of its requests have ended, and how many seconds it has taken."""

TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class PointRun:
    """records: with times that count from the point's beginning; seconds: how long it was measured. is_whole: False if it was
    interrupted."""

    point: Point
    records: tuple[RequestRecord, ...]
    seconds: float
    is_whole: bool

    @property
    def window(self) -> Window:
        return Window(0.0, self.seconds)


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    ask: Ask


class _Noting:
    """Sends a target's requests, and notes each as it ends, however it does."""

    def __init__(self, target: EndpointTarget, note: Callable[[int, RequestRecord], None]) -> None:
        self.ended = 0
        self._target = target
        self._note = note

    def record(self, request: _Numbered, intended: float | None = None) -> RequestRecord:
        return self._target.record(request.ask, intended)

    async def send(self, request: _Numbered, record: RequestRecord) -> Answer:
        try:
            return await self._target.send(request.ask, record)
        finally:
            self.ended += 1
            self._note(request.number, record)


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to measure. key: its place in the journal. timetable: what is asked, and when; the same each time that it is
    called."""

    key: int
    point: Point
    limits: Limits
    target: EndpointTarget
    timetable: Callable[[], Iterator[tuple[float, Ask]]]


def quiet(point: Point, ended: int, seconds: float) -> None:
    """A Progress that tells nobody."""


async def run_plan(
    plan: Plan,
    target: EndpointTarget,
    scale: Scale,
    journal: Journal,
    interrupted: asyncio.Event,
    progress: Progress = quiet,
) -> list[PointRun]:
    """The points in order. After an interrupt, what there is."""
    for _, ask in islice(plan.timetable(-1, scale), plan.limits.warm_up):
        await target.ask(ask)
    runs = []
    for index, point in enumerate(plan.points):
        work = Work(index, point, plan.limits, target, partial(plan.timetable, index, scale))
        run = await run_work(work, journal, interrupted, progress)
        if run.records:
            runs.append(run)
        if interrupted.is_set():
            break
    return runs


async def run_work(work: Work, journal: Journal, interrupted: asyncio.Event, progress: Progress = quiet) -> PointRun:
    """Measured, unless the journal knows it as done; one that was left half way is gone on with."""
    past = journal.past(work.key)
    if not past.is_done:
        await _go_on(work, past, journal, interrupted, progress)
    return PointRun(work.point, tuple(past.records[n] for n in sorted(past.records)), past.seconds, past.is_done)


async def _go_on(work: Work, past: Past, journal: Journal, interrupted: asyncio.Event, progress: Progress) -> None:
    point, limit, clock = work.point, work.limits.seconds, work.target.client.clock
    elapsed = past.seconds
    begin = clock() - elapsed
    sent: dict[int, RequestRecord] = {}

    def note(number: int, record: RequestRecord) -> None:
        journal.note(work.key, number, record, begin)
        sent[number] = record

    def tick() -> None:
        progress(point, sender.ended, clock() - begin)

    sender = _Noting(work.target, note)
    items = _left_to_do(work, past)
    loop: ClosedLoop[_Numbered] | OpenLoop[_Numbered]
    if point.is_open:
        loop = OpenLoop(sender, items, clock)
        loop.start(begin)
    else:
        loop = ClosedLoop(sender, (item for _, item in items))
        loop.start(int(point.value))
    left = None if limit is None else max(0.0, limit - elapsed)
    finished = await _first(loop.finish(), interrupted, left, tick)
    in_time = clock() - begin
    await _stop(loop, work.limits.grace, interrupted, tick)
    past.is_done = not interrupted.is_set() or (limit is not None and in_time >= limit)
    past.records.update({number: relative(record, begin) for number, record in sent.items()})
    if finished:
        past.seconds = max((record.finished or 0.0 for record in past.records.values()), default=in_time)
    else:
        past.seconds = in_time if limit is None else min(in_time, limit)
    journal.leave(work.key, past.seconds, is_done=past.is_done)


async def _stop(
    loop: ClosedLoop[_Numbered] | OpenLoop[_Numbered], grace: float, interrupted: asyncio.Event, tick: Callable[[], None]
) -> None:
    """Those in flight get their grace, unless somebody interrupts."""
    stopping = asyncio.ensure_future(loop.stop(grace))
    await _first(stopping, interrupted, None, tick)
    stopping.cancel()
    with suppress(asyncio.CancelledError):
        await stopping
    await loop.stop(0.0)


def _left_to_do(work: Work, past: Past) -> Iterator[tuple[float, _Numbered]]:
    """Without what was done before an interrupt. What was in flight then is sent again in a closed loop; in an open one its
    time is over."""
    for number, (at, ask) in enumerate(work.timetable()):
        known = past.records.get(number)
        if work.point.is_open and at < past.seconds:
            continue
        if known is None or known.outcome == "cut":
            yield at, _Numbered(number, ask)


async def _first(work: Awaitable[None], interrupted: asyncio.Event, seconds: float | None, tick: Callable[[], None]) -> bool:
    """Until the work is done (True), the seconds are over, or somebody interrupts."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(interrupted.wait())
    end = None if seconds is None else asyncio.get_running_loop().time() + seconds
    try:
        while not (working.done() or waiting.done()):
            left = TICK_SECONDS if end is None else min(TICK_SECONDS, end - asyncio.get_running_loop().time())
            if left <= 0:
                return False
            await asyncio.wait({working, waiting}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            tick()
        return working.done() and not interrupted.is_set()
    finally:
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
