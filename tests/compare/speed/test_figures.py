"""The figures of a point of load, from records with given times."""

from __future__ import annotations

import pytest

from headway.compare.speed.figures import Distribution, point_figures
from headway.compare.speed.goodput import parse_objectives
from headway.compare.stats import Window
from headway.errors import UsageError

from ..records import cut, failure, success


def test_a_distribution() -> None:
    values = Distribution.of([4.0, None, 1.0, 3.0, 2.0], (50.0, 100.0))
    assert values is not None
    assert (values.count, values.mean, values.least, values.most) == (4, 2.5, 1.0, 4.0)
    assert values.std == pytest.approx(1.118034)
    assert values.percentiles == {50.0: 2.5, 100.0: 4.0}
    assert Distribution.of([None]) is None


def test_latencies_of_a_point() -> None:
    f = point_figures([success(0.0, 1.0, 0.1, 11), success(2.0, 0.5, 0.2, 11)], [Window(0.0, 5.0)])
    assert f.ttft is not None and f.tpot is not None and f.itl is not None and f.e2e is not None
    assert f.ttft.mean == pytest.approx(0.75)
    assert f.tpot.mean == pytest.approx(0.15)
    assert f.itl.count == 20
    assert f.e2e.most == pytest.approx(2.5)
    assert f.output_tokens_per_second == pytest.approx(22 / 5)
    assert f.requests_per_second == pytest.approx(0.4)


def test_chunks_of_many_tokens_lower_tpot_but_not_itl() -> None:
    f = point_figures([success(0.0, 1.0, 0.04, 25, per_chunk=4)], [Window(0.0, 2.0)])
    assert f.tpot is not None and f.itl is not None
    assert f.tpot.mean == pytest.approx(0.96 / 99)
    assert f.itl.mean == pytest.approx(0.04)
    assert f.tokens_per_chunk == 4


def test_failures_and_unfinished_ones_stand_apart() -> None:
    records = [
        success(0.0, 1.0, 0.1, 11),
        failure(0.0, 9.0),
        failure(1.0, 1.1, "HTTP 429: slow down", 429),
        cut(1.0, 0.5, 0.1, 6),
    ]
    f = point_figures(records, [Window(0.0, 2.0)])
    assert (f.sent, f.succeeded, f.failed, f.refused, f.unfinished) == (4, 1, 2, 1, 1)
    assert f.error_rate == pytest.approx(2 / 3)
    assert f.reasons == {"HTTP 500: made to fail": 1, "HTTP 429: slow down": 1}
    assert f.ttft is not None and f.ttft.count == 1
    assert f.output_tokens_per_second == pytest.approx((10 + 5) / 2)  # the window ends before the last chunk of each


def test_what_comes_outside_the_windows_is_in_no_total() -> None:
    f = point_figures([success(0.0, 1.0, 0.5, 10)], [Window(0.0, 2.0), Window(3.0, 4.0)])
    assert f.seconds == 3.0
    assert f.output_tokens_per_second == pytest.approx((2 + 2) / 3)
    assert f.peak_tokens_per_second == pytest.approx(2.0)


def test_goodput_counts_requests_that_meet_every_objective() -> None:
    quick, late, slow = success(0.0, 0.4, 0.01, 11), success(0.0, 0.6, 0.01, 11), success(0.0, 0.4, 0.05, 11)
    objectives = parse_objectives(["ttft:500", "tpot:30"])
    f = point_figures([quick, late, slow, failure(0.0, 0.1)], [Window(0.0, 2.0)], objectives=objectives)
    assert f.good == 1
    assert f.goodput == pytest.approx(0.5)
    assert f.json()["goodput_share"] == 0.25
    assert point_figures([quick], [Window(0.0, 2.0)]).goodput is None


def test_objectives_may_come_in_one_text_and_in_any_of_the_names() -> None:
    found = parse_objectives(["ttft:500 tpot:30", "e2el:9000,itl:40ms"])
    assert [(o.name, o.seconds) for o in found] == [("ttft", 0.5), ("tpot", 0.03), ("e2el", 9.0), ("itl", 0.04)]


@pytest.mark.parametrize("text", ["ttft", "ttft:", "ttft:0", "ttft:-5", "tpot:x", "ttfb:5", "ttft:nan", "ttft:1e999"])
def test_objectives_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match="NAME:MILLISECONDS"):
        parse_objectives([text])
