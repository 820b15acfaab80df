"""Three times what the machine can do, a tenth of it as fast: who came in, whether their paces were kept, how quickly the rest
was refused, and whether the server is whole afterwards. A part of promises.py.

How to read it: "on time" is the share of tokens that came by their deadline, over all requests served in the mode; "requests
kept" the share of requests that had at least 99% of their tokens on time; "least" the attainment of the worst of them.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from output import figure, right_aligned
from rich.table import Table

from headway.compare.client import Client
from headway.compare.endpoint import metric
from headway.compare.load import ClosedLoop
from headway.compare.prompts import PROMPTS
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker, StreamRequest
from headway.compare.stats import percentile, summarize
from headway.modes import ModeName

OVERLOAD = 3.0
FAST_SHARE = 0.1
TOKENS = (16, 96)
KEPT = 0.99
"""Attainment from which a request's pace counts as kept."""
REFUSED = 429


async def overload(
    client: Client, maker: RequestMaker, streams: int, seconds: float, notes: list[str]
) -> tuple[Table, dict[str, Any]]:
    """streams: a full house, by which the capacity is measured first."""
    capacity = await _capacity(client, maker, streams)
    records = await _send(client, maker, OVERLOAD * capacity, seconds)
    await asyncio.sleep(1.0)
    used = await metric(client, "headway_kv_blocks", state="used")
    rows = await metric(client, "headway_rows")
    waiting = await metric(client, "headway_waiting")
    table = right_aligned(
        f"{OVERLOAD:g} times the capacity of {capacity:.1f} requests/s for {seconds:.0f} s",
        "asked for",
        "requests",
        "served so",
        "served standard",
        "refused",
        "failed",
        "on time",
        "requests kept",
        "least",
        "TTFT p50 s",
        "refusal p99 ms",
    )
    end = max(record.finished or 0.0 for record in records)
    total = sum(r.output_tokens or 0 for r in records) / (end - records[0].intended)
    figures: dict[str, Any] = {"capacity": capacity, "rate": OVERLOAD * capacity, "tokens_per_second": total}
    figures |= {"blocks_used_after": used, "rows_after": rows, "waiting_after": waiting}
    for mode in (ModeName.FAST, ModeName.STANDARD):
        figures[mode] = mine = _of_mode(records, mode)
        table.add_row(
            mode,
            *(str(mine[key]) for key in ("asked", "served", "served_standard", "refused", "failed")),
            figure(mine["attainment"], "{:.1%}"),
            figure(mine["kept"], "{:.1%}"),
            figure(mine["least_attainment"], "{:.1%}"),
            figure(mine["ttft_p50"], "{:.2f}"),
            figure(mine["refusal_ms_p99"], "{:.0f}"),
        )
    notes.append(f"{total:.0f} tokens/s in all.")
    notes.append(f"Afterwards {figure(used, '{:.0f}')} blocks are in use, {figure(rows, '{:.0f}')} rows are running.")
    return table, figures


def _of_mode(records: Sequence[RequestRecord], mode: ModeName) -> dict[str, Any]:
    """Those that asked for the mode; attainment is that of those who got it."""
    mine = [r for r in records if r.mode is mode]
    done = [r for r in mine if r.succeeded]
    same = [r for r in done if r.served_by is not None and r.served_by.mode == mode]
    refused = [r for r in mine if r.status == REFUSED]
    attained = [r.served_by.attainment for r in same if r.served_by is not None and r.served_by.attainment is not None]
    summary = summarize(same)
    return {
        "asked": len(mine),
        "served": len(same),
        "served_standard": len(done) - len(same) if mode is ModeName.FAST else 0,
        "refused": len(refused),
        "failed": len(mine) - len(done) - len(refused),
        "attainment": summary.attainment,
        "kept": sum(a >= KEPT for a in attained) / len(attained) if attained else None,
        "least_attainment": min(attained, default=None),
        "ttft_p50": summary.ttft_p50,
        "tokens_per_second": summary.tokens_per_second,
        "refusal_ms_p99": percentile([1000 * ((r.finished or 0.0) - r.started) for r in refused], 99),
    }


async def _send(client: Client, maker: RequestMaker, rate: float, seconds: float) -> list[RequestRecord]:
    """Requests at that rate, each at its own time, whatever has become of the others."""
    rng = random.Random(7)
    records: list[RequestRecord] = []
    tasks: list[asyncio.Task[RequestRecord]] = []
    begun = due = client.clock()
    for number in itertools.count():
        due += rng.expovariate(rate)
        if due > begun + seconds:
            break
        await asyncio.sleep(max(0.0, due - client.clock()))
        request = _request(maker, rng, number, FAST_SHARE)
        record = client.record(request, due)
        records.append(record)
        tasks.append(asyncio.create_task(client.send(request, record)))
    await asyncio.gather(*tasks)
    return records


async def _capacity(client: Client, maker: RequestMaker, streams: int) -> float:
    """Requests of the overload's kind that a full house ends in a second."""
    rng = random.Random(3)

    def load() -> Iterator[StreamRequest]:
        for number in itertools.count():
            yield _request(maker, rng, number, 0.0)

    loop = ClosedLoop(client, load())
    loop.start(streams)
    await asyncio.sleep(5.0)
    before, start = sum(r.succeeded for r in loop.records), client.clock()
    await asyncio.sleep(15.0)
    done = sum(r.succeeded for r in loop.records) - before
    seconds = client.clock() - start
    await loop.stop(0.0)
    return done / seconds


def _request(maker: RequestMaker, rng: random.Random, number: int, fast_share: float) -> StreamRequest:
    mode = ModeName.FAST if rng.random() < fast_share else ModeName.STANDARD
    prompt = f"{rng.randrange(10**6)}. {PROMPTS[number % len(PROMPTS)]}"
    return maker.chat(prompt, mode, rng.randrange(*TOKENS), temperature=0.7)
