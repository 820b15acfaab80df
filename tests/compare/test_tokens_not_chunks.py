"""Case K1: a server that sends four tokens in each chunk. Times are given, not waited for."""

from __future__ import annotations

import pytest

from headway.compare.chunks import ChunkReader
from headway.compare.record import RequestRecord
from headway.compare.stats import Window, peak_tokens_per_second, summarize, tokens_in, total_tokens_per_second
from headway.modes import ModeName

from .endpoint import content, event_bytes

CHUNKS, PER_CHUNK, FIRST, GAP = 25, 4, 1.0, 0.04


def read_stream(*, usage: bool, start: float = 0.0) -> RequestRecord:
    record = RequestRecord(ModeName.STANDARD, intended=start, started=start)
    reader = ChunkReader(record)
    reader.feed(content(""), start)
    for number in range(CHUNKS):
        assert not reader.feed(content(" go" * PER_CHUNK), start + FIRST + number * GAP)
    if usage:
        reader.feed(event_bytes([], {"usage": {"prompt_tokens": 7, "completion_tokens": 100}}), start + 1.97)
    assert reader.feed(b"data: [DONE]\n\n", start + 1.97)
    record.outcome = "success"
    record.finished = start + 1.97
    return record


def test_tokens_come_from_usage() -> None:
    record = read_stream(usage=True)
    assert record.output_tokens == 100
    assert record.ttft == pytest.approx(1.0)
    assert record.tpot == pytest.approx(0.96 / 99)
    assert record.tokens_per_second == pytest.approx(99 / 0.96)


def test_a_first_chunk_of_known_size_is_left_out_of_the_rate() -> None:
    record = read_stream(usage=True)
    record.first_chunk_tokens = 4
    assert record.tokens_per_second == pytest.approx(100.0)


def test_without_usage_tokens_are_unknown_and_never_chunks() -> None:
    record = read_stream(usage=False)
    assert record.output_tokens is None
    assert record.tpot is None
    assert record.tokens_per_second is None
    assert record.ttft == pytest.approx(1.0)
    summary = summarize([record])
    assert summary.tokens_per_second is None
    assert summary.output_tokens is None
    assert tokens_in([record], Window(0, 2)) is None


def test_the_peak_is_no_lower_than_the_mean() -> None:
    records = [read_stream(usage=True, start=start) for start in (0.0, 2.0, 4.0, 4.5)]
    window = Window(0.3, 6.9)
    mean = total_tokens_per_second(records, window)
    peak = peak_tokens_per_second(records, window)
    assert mean is not None
    assert peak is not None
    assert peak >= mean > 0
