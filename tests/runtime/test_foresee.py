"""The loop with an engine that has a draft head: whatever the head says, or however it fails, the text is the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_engine import FakeEngine, chain, following

from headway.modes import Mode, ModeName, Modes
from headway.runtime.api import Delta, GenerateRequest, Usage
from headway.runtime.loop import EngineLoop
from headway.sampling.params import SamplingParams
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.lookup import DraftSource
from headway.scheduler.scheduler import Scheduler

AHEAD = 3
TOKENIZER: Any = SimpleNamespace(token_bytes=[bytes([i]) if i < 256 else b"" for i in range(300)], eos_ids=frozenset({299}))
MODES = Modes(Mode(ModeName.STANDARD, 10.0, 4, 2, 2.0), Mode(ModeName.FAST, 25.0, 2, 0, 0.3))

Guess = Callable[[int], Sequence[int]]
"""From a token to what shall follow it."""


def right(token: int) -> list[int]:
    out = []
    for _ in range(AHEAD):
        token = following(token)
        out.append(token)
    return out


def wrong(token: int) -> list[int]:
    return [(t + 1) % 256 for t in right(token)]


def half_right(token: int) -> list[int]:
    return [right(token)[0], *wrong(token)[1:]]


class Foreseeing(FakeEngine):
    """Its head sees that the place it is asked about is the one where the token it is told was sampled."""

    def __init__(self, guess: Guess | None) -> None:
        super().__init__()
        self.info = replace(self.info, num_drafts=0 if guess is None else AHEAD)
        self.guess = guess
        self.asked = 0

    def draft(self, places: Sequence[int], tokens: Sequence[int]) -> tuple[Any, Any]:
        assert self.guess is not None
        assert self._logits is not None
        assert [int(self._logits[place].argmax()) for place in places] == list(tokens), "asked about another row"
        self.asked += 1
        guesses = np.array([self.guess(token) for token in tokens])
        return guesses, np.full(guesses.shape, 0.9, np.float32)


def started(engine: Foreseeing) -> tuple[BlockPool, EngineLoop]:
    """Steps with drafts cost little, so drafts pay."""
    pool = BlockPool(engine.info.num_blocks, engine.info.block_size)
    scheduler = Scheduler(MODES, pool, CostModel([(1, 0.001), (64, 0.0011)], 0.0, 0.0), Limits())
    loop = EngineLoop(engine, scheduler, MODES, TOKENIZER)
    loop.start()
    return pool, loop


def serve(engine: Foreseeing, *requests: tuple[ModeName, list[int], int]) -> tuple[list[list[int]], EngineLoop]:
    """The tokens of each answer, and the loop, which has ended."""
    pool, loop = started(engine)
    params = SamplingParams(temperature=0.0, logprobs=0)

    async def answer(number: int, mode: ModeName, prompt: list[int], most: int) -> list[int]:
        stream = loop.submit(GenerateRequest(f"r{number}", prompt, most, mode, params))
        deltas: list[Delta] = [delta async for delta in stream]
        assert deltas[-1].finish_reason == "length"
        return [lp.token for delta in deltas for lp in delta.logprobs]

    async def main() -> list[list[int]]:
        return await asyncio.gather(*(answer(i, *request) for i, request in enumerate(requests)))

    try:
        answers = asyncio.run(asyncio.wait_for(main(), 20))
        return answers, loop
    finally:
        loop.close()
        assert pool.num_free == pool.num_blocks
        pool.check()


def usage_until(stop: str) -> Usage:
    """Of a request whose guesses are all right, and which a stop string ends."""
    _, loop = started(Foreseeing(right))

    async def last() -> Delta:
        request = GenerateRequest("r", [1, 2, 5], 40, ModeName.STANDARD, SamplingParams(temperature=0.0), stop=(stop,))
        return [delta async for delta in loop.submit(request)][-1]

    try:
        delta = asyncio.run(asyncio.wait_for(last(), 20))
    finally:
        loop.close()
    assert delta.finish_reason == "stop" and delta.usage is not None
    return delta.usage


LONG = (ModeName.STANDARD, [1, 2, 5], 40)


def test_right_guesses_take_fewer_steps_to_the_same_text() -> None:
    plain, foreseeing = Foreseeing(None), Foreseeing(right)
    (expected,), _ = serve(plain, LONG)
    (text,), _ = serve(foreseeing, LONG)
    assert text == expected == chain(5, 40)
    assert foreseeing.num_steps < 0.5 * plain.num_steps
    assert plain.asked == 0


@pytest.mark.parametrize("guess", [wrong, half_right])
def test_wrong_guesses_change_no_text(guess: Guess) -> None:
    engine = Foreseeing(guess)
    (text,), _ = serve(engine, LONG)
    assert text == chain(5, 40)
    assert engine.asked > 0


def test_several_at_once_each_get_their_own_guesses() -> None:
    engine = Foreseeing(right)
    requests = [(ModeName.STANDARD, [1, 2, 10 * i], 20 + i) for i in range(3)]
    answers, _ = serve(engine, *requests, (ModeName.FAST, [7, 8], 30))
    assert answers[:3] == [chain(10 * i, 20 + i) for i in range(3)]
    assert answers[3] == chain(8, 30)
    assert engine.asked > 0


@pytest.mark.parametrize("most", [1, 2, 3])
def test_short_answers_end_where_they_should(most: int) -> None:
    (text,), _ = serve(Foreseeing(right), (ModeName.STANDARD, [1, 2, 5], most))
    assert text == chain(5, most)


@pytest.mark.parametrize("length", [3, 8, 9, 10])
def test_right_guesses_behind_a_stop_string_are_not_counted_as_accepted(length: int) -> None:
    usage = usage_until("".join(map(chr, chain(5, length)[-2:])))
    assert usage.completion_tokens == length
    assert 0 < usage.accepted.total() <= length - 1
    assert usage.drafted.keys() == {DraftSource.DRAFT_HEAD}
    assert all(0 <= usage.accepted[source] <= usage.drafted[source] for source in DraftSource)


def test_a_head_that_fails_is_not_used_any_more(caplog: pytest.LogCaptureFixture) -> None:
    def broken(token: int) -> list[int]:
        raise RuntimeError("the head is broken")

    engine = Foreseeing(broken)
    with caplog.at_level(logging.ERROR):
        answers, _ = serve(engine, LONG, LONG)
    assert answers == [chain(5, 40)] * 2
    assert engine.asked == 1
    assert sum("what makes drafts failed" in record.message for record in caplog.records) == 1
