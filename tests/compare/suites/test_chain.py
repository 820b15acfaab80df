"""Chains: right in one go or in many, and where a mistake ends them."""

from __future__ import annotations

import json
from random import Random

import pytest

from headway.compare.suites.chain import Chain, make
from headway.compare.suites.task import Verdict
from headway.compare.target import Answer

from ..answers import called, said


def through(chain: Chain, answers: list[Answer]) -> Verdict:
    for answer in answers:
        assert chain.ask() is not None
        chain.take(answer)
    assert chain.ask() is None
    return chain.verdict()


@pytest.mark.parametrize("level", range(1, 6))
def test_the_wanted_calls_survive_one_by_one_or_all_at_once(level: int) -> None:
    for seed in range(10):
        steps, world = make(Random(seed), level)
        calls = [(step.wanted.name, dict(step.wanted.arguments)) for step in steps]
        one_by_one = through(Chain(steps, world), [called(call) for call in calls])
        at_once = through(Chain(steps, world), [called(*calls)])
        assert one_by_one == at_once == Verdict(None, len(steps), len(steps), len(steps), len(steps))


def test_a_mistake_ends_the_chain_where_it_is_made() -> None:
    steps, world = make(Random(0), 5)
    calls = [called((step.wanted.name, dict(step.wanted.arguments))) for step in steps]
    verdict = through(Chain(steps, world), [*calls[:3], called(("buy", {"item": "nothing", "count": 1}))])
    assert (verdict.correct, verdict.survived, verdict.steps) == (False, 3, 8)
    assert verdict.fault is not None and verdict.fault.startswith("step 4: ")


def test_stopping_to_talk_ends_the_chain() -> None:
    steps, world = make(Random(0), 2)
    assert through(Chain(steps, world), [said("done")]).survived == 0


def test_going_on_after_the_last_step_is_a_mistake() -> None:
    steps, world = make(Random(0), 1)
    call = (steps[0].wanted.name, dict(steps[0].wanted.arguments))
    assert not through(Chain(steps, world), [called(call, ("buy", {"item": "lamp", "count": 1}))]).correct


def test_a_look_is_no_mistake_but_not_for_ever() -> None:
    steps, world = make(Random(3), 1)
    call = called((steps[0].wanted.name, dict(steps[0].wanted.arguments)))
    assert through(Chain(steps, world), [called(("list_files", {})), call]).correct
    assert not through(Chain(steps, world), [called(("list_files", {})), called(("list_files", {}))]).correct


def test_the_world_answers_what_later_steps_need() -> None:
    """Whoever reads what the tools answer can do every step: nothing needed is hidden."""
    for seed in range(20):
        steps, world = make(Random(seed), 5)
        chain = Chain(steps, world)
        for step in steps:
            ask = chain.ask()
            assert ask is not None
            if "that file says" in step.words or "budget" in step.words:
                assert str(step.wanted.arguments["count"]) in json.dumps(ask.messages[-1])
            chain.take(called((step.wanted.name, dict(step.wanted.arguments))))
        assert chain.verdict().correct


def test_one_go_leaves_the_world_as_it_was_for_the_next() -> None:
    steps, world = make(Random(4), 5)
    before = json.dumps([world.files, world.events])
    through(Chain(steps, world), [called(*[(step.wanted.name, dict(step.wanted.arguments)) for step in steps])])
    assert json.dumps([world.files, world.events]) == before
