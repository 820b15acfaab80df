"""GPUs for a traffic: step times in the scheduler's form, and pools whose promises are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.errors import UsageError
from headway.plan import fleet
from headway.plan.chip import chip
from headway.plan.fleet import Kept, Replica, Traffic
from headway.plan.fleet_command import FleetAsked, replica_of
from headway.plan.known import known_shape
from headway.plan.machine import Engine, Layout, Load
from headway.plan.stepcosts import cost_model, kv_blocks
from headway.plan.steps import predict
from headway.scheduler.cost import CostModel

SHAPE, H100 = known_shape("llama-3.1-8b"), chip("H100").machine()
ASKED = FleetAsked("llama-3.1-8b", "h100", 10.0, isl=256, osl=32)
TRAFFIC = Traffic(10.0, 256, 32, 0.5, 0.1)


@pytest.mark.parametrize(("rows", "context"), [(1, 512), (8, 2048), (64, 1024), (256, 512)])
def test_the_schedulers_steps_take_as_long_as_the_plans(rows: int, context: int) -> None:
    costs = cost_model(SHAPE, H100, Layout(1), Engine())
    plan = predict(SHAPE, replace(H100, memory=1e18), Layout(1, remote_prefill=True), Load(rows, context, 2), Engine())
    assert costs.seconds(rows, rows * context, rows) == pytest.approx(plan.tpot, rel=0.05)


def test_a_prompts_tokens_take_time_and_blocks_are_what_the_weights_leave() -> None:
    costs = cost_model(SHAPE, H100, Layout(1), Engine())
    assert costs.seconds(2048) > 2 * costs.seconds(512)
    room = kv_blocks(SHAPE, H100, Layout(1)) * 32 * SHAPE.kv_bytes
    assert room == pytest.approx(0.95 * 80e9 - SHAPE.weight_bytes, rel=0.01)
    assert kv_blocks(known_shape("llama-3.1-70b"), H100, Layout(1)) == 0


def test_one_replica_keeps_its_promises_until_there_is_too_much() -> None:
    replica = replica_of(ASKED, chip("H100"))
    easy = fleet._sum([fleet._run(fleet._Job(replica, TRAFFIC, 200, 1))])
    assert set(easy) == {"standard", "fast"}
    assert fleet._all_kept(easy, replica)
    assert sum(kept.requests for kept in easy.values()) == 200
    much = replace(TRAFFIC, rate=1000.0)
    assert not fleet._all_kept(fleet._sum([fleet._run(fleet._Job(replica, much, 600, 1))]), replica)


def test_a_promise_is_a_place_a_pace_and_a_first_token() -> None:
    kept = Kept(100, 1.0, 1.0, 50.0, 0.1, 0.5, 1.0)
    assert kept.keeps(1.0)
    assert not kept.keeps(0.4)
    assert not replace(kept, served=0.9).keeps(1.0)
    assert not replace(kept, on_time=0.9).keeps(1.0)


def test_fewer_seats_keep_a_higher_pace() -> None:
    replica = replica_of(ASKED, chip("H100"))
    costs = CostModel.from_dict(replica.costs)
    seats = [fleet.seats_at(costs, pace, TRAFFIC) for pace in (30.0, 60.0, 120.0)]
    assert seats == sorted(seats, reverse=True) and seats[0] > seats[-1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rate": 0.0}, "--rate has to be above 0"),
        ({"fast_share": 1.5}, "--fast-share has to be 0 to 1"),
        ({"prompt": 0.0}, "--isl has to be at least 1"),
    ],
)
def test_bad_traffic_is_refused_in_one_line(change: dict[str, float], says: str) -> None:
    replica = Replica({"base": [[1, 0.01]], "per_context": 0.0, "per_sample": 0.0}, 100, 1, (40.0, 100.0), (2.0, 1.0))
    with pytest.raises(UsageError, match=says):
        fleet.compare(replace(TRAFFIC, **change), replica, 1000)


def test_a_model_that_does_not_fit_says_by_how_much_and_what_would() -> None:
    with pytest.raises(UsageError, match=r"needs 131 GiB .* what would fit: --tp 2"):
        replica_of(replace(ASKED, model="llama-3.1-70b"), chip("H100"))
