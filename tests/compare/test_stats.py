from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.compare.record import Outcome, RequestRecord, ServedBy
from headway.compare.stats import Window, itl, percentile, summarize, tokens_in, tokens_per_chunk, within
from headway.modes import ModeName


def request(
    times: list[float],
    tokens: int | None = None,
    *,
    outcome: Outcome = "success",
    intended: float = 0.0,
    served_by: ServedBy | None = None,
    finished: float | None = None,
) -> RequestRecord:
    return RequestRecord(
        ModeName.STANDARD,
        intended,
        intended,
        chunk_times=times,
        output_tokens=tokens,
        outcome=outcome,
        finished=finished if finished is not None else (times[-1] if times else intended),
        reason="made to fail" if outcome == "failure" else None,
        served_by=served_by,
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 100))
def test_percentile_is_numpy_s(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)), abs=1e-6)


def test_no_values_have_no_percentile() -> None:
    assert percentile([], 50) is None


def test_itl_is_the_gaps_between_chunks() -> None:
    assert itl(request([1.0, 1.5, 3.0])) == [0.5, 1.5]
    assert itl(request([1.0])) == []


def test_a_token_counts_in_the_window_in_which_it_came() -> None:
    records = [request([1.0, 2.0, 3.0, 4.0], tokens=8)]
    assert tokens_in(records, Window(2.0, 4.0)) == 4
    assert tokens_in(records, Window(5.0, 9.0)) == 0


def test_unfinished_requests_count_with_the_others_tokens_per_chunk() -> None:
    finished = request([1.0, 2.0], tokens=8)
    unfinished = request([1.5, 2.5, 3.5], outcome="cut")
    assert tokens_per_chunk([finished, unfinished]) == 4
    assert tokens_in([finished, unfinished], Window(0.0, 3.0)) == 8 + 2 * 4
    assert tokens_in([unfinished], Window(0.0, 3.0)) is None


def test_latencies_come_from_successes_alone() -> None:
    good = [request([0.2, 0.4], tokens=2), request([0.3, 0.5], tokens=2), request([0.4, 0.6], tokens=2)]
    bad = request([], outcome="failure", finished=0.001)
    cut = request([9.0], outcome="cut")
    summary = summarize([*good, bad, cut])
    assert (summary.requests, summary.errors, summary.error_rate) == (4, 1, 0.25)
    assert summary.ttft_p50 == pytest.approx(0.3)
    assert summary.ttft_p99 == pytest.approx(0.398)
    assert summary.tpot_p50 == pytest.approx(0.2)
    assert summary.output_tokens == 6
    assert summary.reasons == ("made to fail",)


def test_latency_counts_from_the_intended_start() -> None:
    late = request([5.0, 6.0], tokens=2, intended=1.0)
    late.started = 4.5
    assert late.ttft == 4.0


def test_a_request_belongs_to_the_window_that_holds_the_middle_of_its_output() -> None:
    windows = [Window(0, 10), Window(10, 20)]
    early, late = request([8.0, 11.0], tokens=2), request([9.0, 12.0], tokens=2)
    failure = request([], outcome="failure", finished=15.0)
    cut = request([1.0, 2.0], outcome="cut")
    records = [early, late, failure, cut]
    assert within(records, windows[:1]) == [early]
    assert within(records, windows[1:]) == [late, failure]


def test_attainment_is_weighted_by_tokens_and_cost_is_per_token() -> None:
    long = request([1.0, 2.0], tokens=30, served_by=ServedBy("standard", 10.0, 1.0, 0.3))
    short = request([1.0, 2.0], tokens=10, served_by=ServedBy("standard", 10.0, 0.5, 0.5))
    silent = request([1.0, 2.0], tokens=99)
    summary = summarize([long, short, silent])
    assert summary.attainment == pytest.approx((30 + 5) / 40)
    assert summary.engine_seconds_per_token == pytest.approx(0.8 / 40)


def test_nothing_measured_is_unknown_not_zero() -> None:
    summary = summarize([])
    assert summary.requests == 0
    assert summary.error_rate is None
    assert summary.tokens_per_second is None
    assert summary.attainment is None
