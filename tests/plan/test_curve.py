"""The curve: sane where nothing was measured, and what a plan says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.errors import UsageError
from headway.plan.curve import SPLITS, Speculation, make_curve
from headway.plan.frontier import at_speed, frontier, price_multiple
from headway.plan.known import entries, known_shape
from headway.plan.machine import Engine, Layout, Load
from headway.plan.measured import machine_of
from headway.plan.quantized import named_bits
from headway.plan.shape import ModelShape
from headway.plan.steps import predict
from headway.plan.terms import rows_that_fit

H200, B200 = machine_of("h200_sxm"), machine_of("b200_sxm")


def in_fp8(name: str) -> ModelShape:
    shape = known_shape(name)
    return shape.with_bits(named_bits("fp8", has_experts=shape.experts is not None))


def tpot(shape: ModelShape, rows: float, *, bandwidth: float = 1.0, engine: Engine | None = None, isl: float = 1024) -> float:
    machine = replace(B200, bandwidth=B200.bandwidth * bandwidth, memory=1e13)
    return predict(shape, machine, Layout(8), Load(rows, isl, 1024), engine or Engine()).tpot


@pytest.mark.parametrize("name", list(entries()))
def test_more_rows_or_longer_contexts_never_take_less_time(name: str) -> None:
    shape = in_fp8(name)
    times = [tpot(shape, rows) for rows in (1, 2, 4, 8, 16, 64, 256, 1024, 4096)]
    assert times == sorted(times)
    assert tpot(shape, 64, isl=8192) > tpot(shape, 64)
    assert tpot(shape, 64, bandwidth=2) < tpot(shape, 64)


def test_a_step_never_beats_the_bandwidth() -> None:
    shape = in_fp8("llama-3.1-70b")
    for split in SPLITS:
        for rows in (1, 16):
            step = predict(shape, H200, Layout(split), Load(rows, 1024, 1024), Engine())
            assert step.tpot > shape.dense_bytes / split / H200.bandwidth


def test_the_parts_are_the_step() -> None:
    step = predict(in_fp8("deepseek-v3"), B200, Layout(8), Load(64, 1024, 1024), Engine("sglang"))
    assert sum(step.parts.values()) == pytest.approx(step.tpot)
    assert step.limit == "weights"


def test_without_graphs_a_step_takes_as_long_as_its_launches() -> None:
    shape = in_fp8("llama-3.1-8b")
    assert tpot(shape, 1, engine=Engine(eager=True)) > 1.5 * tpot(shape, 1)


def test_rows_beyond_the_memory_wait() -> None:
    shape, load = in_fp8("llama-3.1-70b"), Load(128, 8192, 1024)
    room = rows_that_fit(shape, H200, Layout(1), 9216)
    step = predict(shape, H200, Layout(1), load, Engine("trtllm"))
    assert room == pytest.approx(40, rel=0.1)  # measured: between 32, where all run, and 64, where TTFT is half a minute
    assert step.rows == pytest.approx(room)
    assert step.ttft > 10


def test_the_frontier_drops_what_is_beaten() -> None:
    assert frontier([(10, 5), (20, 4), (15, 3), (10, 4), (30, 1)]) == [(10, 5), (20, 4), (30, 1)]


def test_prices_along_a_frontier() -> None:
    best: list[tuple[float, float]] = [(10, 100), (40, 50), (160, 5)]
    assert at_speed(best, 5) == 100
    assert at_speed(best, 20) == pytest.approx(70.7, abs=0.1)
    assert at_speed(best, 200) is None
    assert price_multiple(best, 40, 160) == pytest.approx(10)
    assert price_multiple(best, 5, 160) is None


def test_fast_costs_more_than_its_speed_and_six_times_the_price_buys_less_than_six() -> None:
    curve = make_curve(in_fp8("llama-3.1-70b"), H200, Engine(), SPLITS, 1024, 1024, 2.5)
    assert curve.fast is not None
    assert curve.multiple is not None
    assert curve.multiple > 2.5
    assert curve.fast.speed >= 2.5 * curve.standard.speed
    assert curve.multiple == pytest.approx(curve.price_of(2.5))
    assert curve.multiple == pytest.approx(curve.fast.chip_hours / curve.standard.chip_hours)
    assert 2.5 <= curve.speed_up_at(curve.multiple) < 2.8
    assert 1 < curve.speed_up_at(6) < 6
    assert curve.price_of(curve.largest_speed_up * 1.01) is None


def test_speculation_moves_the_curve_as_far_as_drafts_are_accepted() -> None:
    shape = in_fp8("llama-3.1-70b")
    plain = make_curve(shape, H200, Engine(), SPLITS, 1024, 1024, 2.5)
    fastest = [
        make_curve(shape, H200, Engine(drafts=3), SPLITS, 1024, 1024, 2.5, Speculation(3, share)).best[-1].speed
        for share in (0.0, 0.5, 0.9)
    ]
    assert fastest[0] < plain.best[-1].speed < fastest[1] < fastest[2] < 4 * plain.best[-1].speed
    assert Speculation(3, 0.5).tokens == 1.875
    assert Speculation(3, 1.0).tokens == 4


def test_a_model_that_doesnt_fit_says_by_how_much_and_what_would() -> None:
    with pytest.raises(UsageError, match=r"needs 756 GiB.*190 GiB too few; what would fit: --tp 16, or --precision fp8 on 8"):
        make_curve(known_shape("llama-3.1-405b"), machine_of("h100_sxm"), Engine(), (8,), 1024, 1024, 2.5)


def test_a_speed_out_of_reach_is_said() -> None:
    with pytest.raises(UsageError, match="nothing here gives one user 5000 tokens/s"):
        make_curve(in_fp8("llama-3.1-70b"), H200, Engine(), SPLITS, 1024, 1024, 2.5, standard=5000)


def test_standard_is_slower_where_fast_would_be_out_of_reach() -> None:
    curve = make_curve(in_fp8("deepseek-v3"), B200, Engine(), (8,), 8192, 1024, 2.5)
    assert curve.fast is not None
    assert curve.standard.speed * 2.5 <= curve.best[-1].speed
