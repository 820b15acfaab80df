"""A small model that reads along and guesses: whatever it guesses, the text is the large one's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_engine import VOCAB, FakeEngine, chain
from numpy.typing import NDArray

from headway.modes import Mode, ModeName, Modes
from headway.runtime.api import Delta, GenerateRequest
from headway.runtime.draft_model import CATCH_UP, NUM_DRAFTS, DraftModel
from headway.runtime.loop import EngineLoop
from headway.sampling.params import SamplingParams
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.lookup import DraftSource, Lookup
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler

TOKENIZER: Any = SimpleNamespace(token_bytes=[bytes([i]) if i < 256 else b"" for i in range(VOCAB)], eos_ids=frozenset({299}))
MODES = Modes(Mode(ModeName.STANDARD, 10.0, 4, 2, 2.0), Mode(ModeName.FAST, 25.0, 2, 0, 0.3))


class Small(FakeEngine):
    """Right but after tokens that `errs` divides (0 = always right), and as sure as `height` of its logits says."""

    def __init__(self, errs: int = 0, height: float = 9.0, **facts: Any) -> None:
        super().__init__(**facts)
        self.errs = errs
        self.height = height

    def wait(self) -> NDArray[np.float32]:
        logits = super().wait() * (self.height / 9.0)
        if self.errs:
            for row in logits:
                token = int(row.argmax())
                if token % self.errs == 0:
                    row[token], row[(token + 1) % 256] = 0, self.height
        return logits


def request(number: int, tokens: list[int]) -> Request:
    return Request(
        id=f"r{number}",
        mode=ModeName.FAST,
        pace=10.0,
        arrival=0.0,
        ttft_deadline=1.0,
        tokens=tokens,
        max_tokens=50,
        stop_tokens=frozenset(),
        lookup=Lookup(),
    )


def guessed(model: DraftModel, *requests: Request) -> list[list[int]]:
    return [guess.tokens for guess in model.guess([(0, r) for r in requests])]


def test_it_guesses_what_follows_and_goes_on_from_what_it_has_read() -> None:
    engine = Small()
    model, r = DraftModel(engine), request(1, [9, 8, 7, 5])
    assert guessed(model, r) == [chain(5, NUM_DRAFTS)]
    steps = engine.num_steps
    r.tokens += chain(5, NUM_DRAFTS + 1)
    assert guessed(model, r) == [chain(r.tokens[-1], NUM_DRAFTS)]
    assert engine.num_steps == steps + NUM_DRAFTS, "what it guessed right is read already"
    r.tokens += [77, 78]  # another turn than it guessed
    assert guessed(model, r) == [chain(78, NUM_DRAFTS)]


def test_a_guess_that_is_hardly_likely_ends_the_guessing() -> None:
    engine = Small(height=5.0)  # of 300 tokens: a third
    model = DraftModel(engine)
    (guess,) = model.guess([(0, request(1, [9, 5]))])
    assert guess.tokens == chain(5, 1)
    assert guess.likelihoods == pytest.approx([np.exp(5) / (np.exp(5) + VOCAB - 1)])
    assert engine.num_steps == 1


def test_a_long_prompt_is_read_bit_by_bit() -> None:
    engine = Small(num_blocks=100, context_length=400)
    model, r = DraftModel(engine), request(1, [i % 250 for i in range(2 * CATCH_UP + 10)])
    assert guessed(model, r) == [[]]
    assert guessed(model, r) == [[]]
    assert guessed(model, r) == [chain(r.tokens[-1], NUM_DRAFTS)]


def test_who_was_not_asked_about_for_longest_makes_room() -> None:
    engine = Small(num_blocks=4, block_size=4)  # two of these at a time
    model = DraftModel(engine)
    all_of_them = [request(n, [n, 2, 3, 4, 5, 6]) for n in range(4)]
    for _ in range(2):
        for r in all_of_them:
            assert guessed(model, r) == [chain(6, NUM_DRAFTS)]
    two = guessed(model, *all_of_them[:2])
    assert two == [chain(6, NUM_DRAFTS)] * 2
    three = guessed(model, *all_of_them[:3])
    assert three[:2] == [chain(6, NUM_DRAFTS)] * 2 and three[2] == [], "there is no room for a third"


def test_the_context_is_not_run_over() -> None:
    engine = Small(num_blocks=8, block_size=4, context_length=16)
    model, r = DraftModel(engine), request(1, list(range(14)))
    assert guessed(model, r) == [chain(13, NUM_DRAFTS)]
    r.tokens += [1, 2, 3]
    assert guessed(model, r) == [[]]


@pytest.mark.parametrize("errs", [0, 1, 2, 3])
def test_the_text_is_the_large_models(errs: int) -> None:
    small, large = Small(errs), FakeEngine()
    pool = BlockPool(large.info.num_blocks, large.info.block_size)
    scheduler = Scheduler(MODES, pool, CostModel([(1, 0.001), (64, 0.0011)], 0.0, 0.0), Limits())
    loop = EngineLoop(large, scheduler, MODES, TOKENIZER, guesser=DraftModel(small))
    loop.start()

    async def answer(number: int) -> Delta:
        params = SamplingParams(temperature=0.0, logprobs=0)
        stream = loop.submit(GenerateRequest(f"r{number}", [1, 2, 10 * number], 40, ModeName.STANDARD, params))
        deltas = [delta async for delta in stream]
        assert [lp.token for delta in deltas for lp in delta.logprobs] == chain(10 * number, 40)
        return deltas[-1]

    async def main() -> list[Delta]:
        return await asyncio.gather(answer(1), answer(2))

    try:
        ends = asyncio.run(asyncio.wait_for(main(), 20))
    finally:
        loop.close()
    usages = [end.usage for end in ends if end.usage is not None]
    drafted = sum(usage.drafted[DraftSource.DRAFT_MODEL] for usage in usages)
    accepted = sum(usage.accepted[DraftSource.DRAFT_MODEL] for usage in usages)
    assert drafted > 0
    assert accepted == drafted if errs == 0 else accepted < drafted
    if errs == 0:
        assert large.num_steps < 40, "drafts save steps"
