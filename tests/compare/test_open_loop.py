"""The load that comes by a timetable: it doesn't wait, and nothing is left out."""

from __future__ import annotations

import asyncio

import pytest

from headway.compare.client import Client
from headway.compare.open_loop import OpenLoop
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker
from headway.modes import ModeName

from .endpoint import FakeServer, serving

REQUEST = RequestMaker("fake").chat("hi", ModeName.STANDARD, 8, temperature=0.0)


def test_requests_are_sent_while_others_wait() -> None:
    async def run() -> list[RequestRecord]:
        server = FakeServer(stall=0.3)
        async with serving(server), Client(server.url) as client:
            loop = OpenLoop(client, iter([(i / 100, REQUEST) for i in range(20)]), client.clock)
            loop.start()
            await loop.finish()
            return loop.records

    records = asyncio.run(run())
    assert all(record.succeeded for record in records)
    first_answer = min(record.chunk_times[0] for record in records)
    assert all(record.started < first_answer for record in records)
    times = [record.intended - records[0].intended for record in records]
    assert times == pytest.approx([i / 100 for i in range(20)])


def test_times_in_the_past_are_sent_at_once_and_count_from_then() -> None:
    async def run() -> list[RequestRecord]:
        async with serving(FakeServer()) as server, Client(server.url) as client:
            loop = OpenLoop(client, iter([(0.0, REQUEST), (5.0, REQUEST)]), client.clock)
            loop.start(begin=client.clock() - 10.0)
            await loop.finish()
            return loop.records

    first, second = asyncio.run(run())
    assert first.ttft is not None and second.ttft is not None
    assert first.ttft >= 10.0
    assert 5.0 <= second.ttft < first.ttft


def test_those_in_flight_at_the_stop_are_cut_off() -> None:
    async def run() -> list[RequestRecord]:
        server = FakeServer(tokens=10_000, gap=0.01)
        async with serving(server), Client(server.url) as client:
            loop = OpenLoop(client, iter([(0.0, REQUEST), (0.0, REQUEST), (99.0, REQUEST)]), client.clock)
            loop.start()
            while len(loop.records) < 2 or not all(record.chunk_times for record in loop.records):
                await asyncio.sleep(0.01)
            await loop.stop(grace_seconds=0.0)
            return loop.records

    records = asyncio.run(run())
    assert [record.outcome for record in records] == ["cut", "cut"]
