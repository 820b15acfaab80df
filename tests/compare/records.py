"""Records with given times."""

from __future__ import annotations

from headway.compare.record import RequestRecord
from headway.modes import ModeName


def success(start: float, ttft: float, gap: float, chunks: int, *, per_chunk: int = 1, usage: bool = True) -> RequestRecord:
    """`chunks` chunks, `gap` seconds apart."""
    times = [start + ttft + number * gap for number in range(chunks)]
    record = RequestRecord(
        ModeName.STANDARD, start, start, status=200, chunk_times=times, finished=times[-1], outcome="success"
    )
    if usage:
        record.prompt_tokens, record.output_tokens = 7, chunks * per_chunk
    return record


def failure(start: float, end: float, reason: str = "HTTP 500: made to fail", status: int = 500) -> RequestRecord:
    return RequestRecord(ModeName.STANDARD, start, start, status=status, finished=end, outcome="failure", reason=reason)


def cut(start: float, ttft: float, gap: float, chunks: int) -> RequestRecord:
    record = success(start, ttft, gap, chunks, usage=False)
    record.outcome, record.finished = "cut", None
    return record
