"""Case K3: failures stay in the sums and out of the latencies."""

from __future__ import annotations

import asyncio
import itertools

from headway.compare.client import Client
from headway.compare.load import ClosedLoop
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker, StreamRequest
from headway.compare.stats import Window, summarize, tokens_in
from headway.modes import ModeName

from .endpoint import FakeServer, serving

REQUEST = RequestMaker("fake").chat("hi", ModeName.STANDARD, 8, temperature=0.0)


async def send_one(server: FakeServer, request: StreamRequest = REQUEST) -> RequestRecord:
    async with serving(server), Client(server.url) as client:
        return await client.send(request)


async def send_many(server: FakeServer, count: int, streams: int) -> list[RequestRecord]:
    async with serving(server), Client(server.url) as client:
        load = ClosedLoop(client, itertools.repeat(REQUEST, count))
        load.start(streams)
        await load.finish()
        return load.records


def test_a_stream_becomes_a_record() -> None:
    record = asyncio.run(send_one(FakeServer(content_at=0.05, gap=0.02, tokens=6, per_chunk=2)))
    assert record.outcome == "success"
    assert record.status == 200
    assert (record.prompt_tokens, record.output_tokens) == (7, 6)
    assert len(record.chunk_times) == 3
    assert record.ttft is not None
    assert record.ttft >= 0.04  # a server's sleep may end a clock tick early, never much
    assert record.finish_reason == "stop"
    assert record.service_tier == "default"
    assert record.served_by is not None
    assert record.served_by.attainment == 0.75
    assert not record.served_fast


def test_a_quarter_fails() -> None:
    summary = summarize(asyncio.run(send_many(FakeServer(fail_every=4), count=40, streams=4)))
    assert (summary.requests, summary.errors, summary.error_rate) == (40, 10, 0.25)
    assert summary.reasons == ("HTTP 500: made to fail",)
    assert summary.ttft_p50 is not None
    assert summary.ttft_p50 >= 0
    assert summary.output_tokens == 30 * 8


def test_a_connection_that_breaks_is_a_failure_whose_tokens_count() -> None:
    broken = asyncio.run(send_one(FakeServer(cut_after=3, gap=0.01)))
    assert broken.outcome == "failure"
    assert broken.reason
    assert len(broken.chunk_times) == 3
    whole = asyncio.run(send_one(FakeServer()))
    everything = Window(min(broken.started, whole.started), max(broken.finished or 0, whole.finished or 0))
    assert tokens_in([broken, whole], everything) == 3 + 8


def test_a_server_that_dies_half_way_leaves_successes_and_errors() -> None:
    async def run() -> list[RequestRecord]:
        server = FakeServer()
        await server.start()
        async with Client(server.url) as client:
            load = ClosedLoop(client, itertools.repeat(REQUEST))
            load.start(2)
            while sum(record.succeeded for record in load.records) < 6:
                await asyncio.sleep(0.01)
            await server.stop()
            while not any(record.outcome == "failure" for record in load.records):
                await asyncio.sleep(0.01)
            await load.stop(grace_seconds=5.0)
            return load.records

    summary = summarize(asyncio.run(run()))
    assert 0 < summary.errors < summary.requests
    assert summary.ttft_p50 is not None
    assert summary.ttft_p50 >= 0


def test_requests_in_flight_at_the_stop_are_neither_success_nor_error() -> None:
    async def run() -> list[RequestRecord]:
        server = FakeServer(tokens=10_000, gap=0.01)
        async with serving(server), Client(server.url) as client:
            load = ClosedLoop(client, itertools.repeat(REQUEST))
            load.start(3)
            while not all(record.chunk_times for record in load.records) or len(load.records) < 3:
                await asyncio.sleep(0.01)
            await load.stop(grace_seconds=0.0)
            return load.records

    records = asyncio.run(run())
    assert [record.outcome for record in records] == ["cut"] * 3
    assert all(record.chunk_times for record in records)
    assert summarize(records).requests == 0


def test_a_stopped_load_can_start_again() -> None:
    async def run() -> tuple[int, int]:
        async with serving(FakeServer()) as server, Client(server.url) as client:
            load = ClosedLoop(client, itertools.repeat(REQUEST))
            counts = []
            for _ in range(2):
                load.start(1)
                await asyncio.sleep(0.05)
                await load.stop(grace_seconds=5.0)
                counts.append(len(load.records))
            return counts[0], counts[1]

    first, second = asyncio.run(run())
    assert 0 < first < second


def test_what_is_no_stream_fails_with_a_reason() -> None:
    class Plain(FakeServer):
        async def _chat(self, request):  # type: ignore[no-untyped-def]
            return await self._models(request)

    record = asyncio.run(send_one(Plain()))
    assert record.outcome == "failure"
    assert record.reason == "not an event stream but application/json"


def test_nobody_there_fails_with_a_reason() -> None:
    async def run() -> RequestRecord:
        async with serving(FakeServer()) as server:
            url = server.url
        async with Client(url) as client:
            return await client.send(REQUEST)

    record = asyncio.run(run())
    assert record.outcome == "failure"
    assert record.reason
