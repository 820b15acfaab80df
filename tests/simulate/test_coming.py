"""Who comes next, and who waited for whose end."""

from __future__ import annotations

import random
from math import inf

import pytest

from headway.simulate.coming import Coming, closed_loops
from headway.simulate.trace import Arrival
from simulate.small import FAST, STANDARD, simulation


def arrival(at: float, seconds: float | None, key: str = "a") -> Arrival:
    return Arrival(at, 10, 20, STANDARD, key=key, ended=None if seconds is None else at + seconds)


def closed(clients: int, requests: int, *, think: float = 0.01, key: str = "a") -> list[Arrival]:
    """What a closed loop leaves in a recording: every client's next request comes soon after its last one's end."""
    randomness = random.Random(1)
    times = [0.3 * client for client in range(clients)]
    made = []
    for _ in range(requests):
        client = min(range(clients), key=times.__getitem__)
        made.append(arrival(times[client], 1.0 + randomness.random(), key))
        times[client] = (made[-1].ended or 0.0) + think
    return sorted(made, key=lambda a: a.at)


def opened(rate: float, requests: int) -> list[Arrival]:
    randomness = random.Random(2)
    made, at = [], 0.0
    for _ in range(requests):
        at += randomness.expovariate(rate)
        made.append(arrival(at, 1.0 + randomness.random()))
    return made


def test_they_come_in_order_of_time_wherever_they_are_from() -> None:
    coming = Coming([arrival(1.0, None), arrival(4.0, None)])
    assert coming.at == 1.0
    assert coming.pop().at == 1.0
    coming.add(arrival(0.0, None), 5.0)
    coming.add(arrival(0.0, None), 3.0)
    assert coming.at == 3.0
    assert [coming.pop().at for _ in range(3)] == [3.0, 4.0, 5.0]
    assert coming.at == inf


def test_a_closed_loop_is_seen_and_everybody_but_the_first_waits() -> None:
    timed = closed_loops(closed(clients=8, requests=100))
    assert len(timed) == 8
    number = 0
    for first in timed:
        link: Arrival | None = first
        while link is not None:
            number += 1
            assert link.then is None or link.think == pytest.approx(0.01)
            link = link.then
    assert number == 100


@pytest.mark.parametrize("rate", [0.5, 5.0, 200.0])
def test_arrivals_that_wait_for_nobody_are_an_open_loop(rate: float) -> None:
    made = opened(rate, 500)
    assert closed_loops(made) == made
    assert all(a.then is None for a in made)


def test_clients_of_one_key_are_told_from_those_of_another() -> None:
    strangers = opened(2.0, 60)
    both = sorted(closed(clients=4, requests=60, key="b") + strangers, key=lambda a: a.at)
    timed = closed_loops(both)
    assert len([a for a in timed if a.key == "b"]) == 4
    assert len([a for a in timed if a.key == "a"]) == 60


def test_too_few_to_tell_come_by_the_clock_unless_it_is_asked_for() -> None:
    made = closed(clients=4, requests=12)
    assert len(closed_loops(made)) == 12
    assert len(closed_loops(made, everybody=True)) == 4


def test_a_trace_that_tells_no_ends_comes_by_the_clock() -> None:
    made = [arrival(float(n), None) for n in range(50)]
    assert closed_loops(made, everybody=True) == made


def test_who_waits_comes_when_its_predecessor_has_ended_also_by_a_refusal() -> None:
    """On a machine that takes longer than the recorded one no queue builds up."""
    made = closed(clients=4, requests=80)
    open_loop = simulation(seats=4).run(made)
    waiting = simulation(seats=4).run(closed_loops(made))
    assert waiting.standard.served == open_loop.standard.served == 80
    assert max(waiting.standard.ttft) < 0.2
    refused = simulation(seats=1, waiting=0).run(closed_loops(closed(clients=4, requests=80)))
    assert refused.standard.refused + refused.standard.served == 80
    assert refused.standard.refused > 40


def test_a_slow_machine_makes_an_open_loop_queue_but_not_a_closed_one() -> None:
    made = [
        Arrival(a.at / 8, a.prompt_tokens, 60, STANDARD, ended=None if a.ended is None else a.ended / 8)
        for a in closed(clients=4, requests=80, think=0.05)
    ]
    queue = simulation(seats=4).run(made)
    loop = simulation(seats=4).run(closed_loops(made))
    assert max(queue.standard.ttft) > 5.0
    assert max(loop.standard.ttft) < 0.3


def test_the_first_fast_one_of_a_loop_is_no_predecessor_of_a_standard_one() -> None:
    made = closed(clients=2, requests=40)
    mixed = [Arrival(a.at, 10, 20, FAST if n % 2 else STANDARD, key="a", ended=a.ended) for n, a in enumerate(made)]
    for a in closed_loops(mixed, everybody=True):
        while a.then is not None:
            assert a.then.mode is a.mode
            a = a.then
