"""The queue is fair between keys."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from machine import Machine

from headway.modes import ModeName
from headway.scheduler.queue import Queue
from headway.scheduler.request import Request

STANDARD = ModeName.STANDARD


def request(name: str, key: str, arrival: float = 0.0) -> Request:
    return Request(name, STANDARD, 10.0, arrival, 1.0, [1, 2], 5, key=key)


def order(queue: Queue) -> list[str]:
    served = []
    while (r := queue.first()) is not None:
        queue.remove(r)
        queue.serve(r.key, prompt=r.num_prompt, output=5)
        served.append(r.id)
    return served


def test_one_key_is_served_in_order_of_arrival() -> None:
    queue = Queue()
    for n in range(4):
        queue.push(request(f"a{n}", "a", n))
    assert len(queue) == 4
    assert {r.id for r in queue} == {"a0", "a1", "a2", "a3"}
    assert order(queue) == ["a0", "a1", "a2", "a3"]
    assert queue.first() is None


def test_a_key_that_sends_much_does_not_hold_up_one_that_sends_little() -> None:
    queue = Queue()
    for n in range(100):
        queue.push(request(f"greedy{n}", "greedy", n * 0.001))
    queue.push(request("modest", "modest", 1.0))
    assert order(queue).index("modest") <= 1


def test_who_was_away_has_no_claim_on_that_time() -> None:
    queue = Queue()
    queue.arrive("old", set())
    queue.serve("old", output=10_000)
    queue.arrive("new", {"old"})
    for n in range(10):
        queue.push(request(f"old{n}", "old", n))
        queue.push(request(f"new{n}", "new", n))
    first = order(queue)[:10]
    assert 4 <= sum(name.startswith("new") for name in first) <= 6


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), min_size=1, max_size=60))
def test_everybody_comes_out_once(arrivals: list[tuple[str, int]]) -> None:
    queue = Queue()
    for n, (key, _) in enumerate(arrivals):
        queue.arrive(key, set())
        queue.push(request(f"r{n}", key, float(n)))
    served = order(queue)
    assert sorted(served) == sorted(f"r{n}" for n in range(len(arrivals)))
    assert len(queue) == 0


def test_seats_go_round_between_keys_in_the_scheduler() -> None:
    m = Machine(max_rows=4)
    for n in range(40):
        m.scheduler.add(request(f"a{n}", "a", 0.0), 0.0)
    for n in range(4):
        m.scheduler.add(request(f"b{n}", "b", 0.1), 0.1)
    while len(m.finished) < 16:
        m.step()
    assert Counter(r.key for r in m.finished)["b"] == 4
    m.run_dry()
    assert len(m.finished) == 44
