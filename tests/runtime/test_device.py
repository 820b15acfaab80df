"""Two models on one device."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fake_engine import FakeEngine, chain

from headway.errors import RequestError
from headway.modes import Mode, ModeName, Modes
from headway.runtime.api import GenerateRequest
from headway.runtime.device import Device
from headway.runtime.loop import MAX_FAILURES, EngineLoop
from headway.sampling.params import SamplingParams
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.scheduler import Scheduler

TOKENIZER: Any = SimpleNamespace(token_bytes=[bytes([i]) if i < 256 else b"" for i in range(300)], eos_ids=frozenset())


class Model:
    def __init__(self, device: Device, mode: ModeName, pace: float, seconds: float) -> None:
        self.mode = mode
        self.engine = FakeEngine(seconds=seconds)
        self.pool = BlockPool(self.engine.info.num_blocks, self.engine.info.block_size)
        modes = Modes(Mode(mode, pace, 4, 2, 2.0))
        scheduler = Scheduler(modes, self.pool, CostModel([(1, 0.001), (64, 0.002)], 0.0, 0.0), Limits())
        self.loop = EngineLoop(self.engine, scheduler, modes, TOKENIZER, device)

    async def tokens(self, name: str, first: int, count: int) -> list[int]:
        params = SamplingParams(temperature=0.0, logprobs=0)
        stream = self.loop.submit(GenerateRequest(name, [1, first], count, self.mode, params))
        deltas = [delta async for delta in stream]
        if deltas[-1].error is not None:
            raise RuntimeError(deltas[-1].error)
        return [token.token for delta in deltas for token in delta.logprobs]


def models() -> tuple[Model, Model]:
    device = Device()
    made = Model(device, ModeName.STANDARD, 10.0, 0.004), Model(device, ModeName.SPARK, 50.0, 0.001)
    for model in made:
        model.loop.start()
    return made


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


def test_both_answer_at_once_each_with_its_own_text() -> None:
    large, small = models()

    async def main() -> list[list[int]]:
        asked = [model.tokens(f"r{i}", i, 30) for i in range(3, 6) for model in (large, small)]
        return list(await asyncio.gather(*asked))

    try:
        answers = run(main())
        assert answers == [chain(i, 30) for i in range(3, 6) for _ in range(2)]
        assert large.engine.num_steps > 0
        assert small.engine.num_steps > 0
    finally:
        large.loop.close()
        small.loop.close()
    for model in (large, small):
        assert model.pool.num_free == model.pool.num_blocks


def test_one_that_closes_leaves_the_other_at_work() -> None:
    large, small = models()
    large.loop.close()
    assert not large.loop.alive
    assert small.loop.alive
    try:
        assert run(small.tokens("r", 3, 5)) == chain(3, 5)
    finally:
        small.loop.close()
    assert not small.loop.alive


def test_an_engine_that_is_given_up_does_not_take_the_other_with_it() -> None:
    large, small = models()

    def broken(*arguments: object) -> None:
        raise RuntimeError("no such device")

    large.engine.start = broken  # type: ignore[method-assign]

    async def fail() -> None:
        for i in range(MAX_FAILURES):
            with pytest.raises(RuntimeError, match="failed in this step"):
                await large.tokens(f"r{i}", 3, 5)
        while large.loop.alive:
            await asyncio.sleep(0.001)
        with pytest.raises(RequestError, match="has stopped"):
            await large.tokens("late", 3, 5)

    try:
        run(fail())
        assert small.loop.alive
        assert run(small.tokens("r", 3, 5)) == chain(3, 5)
    finally:
        large.loop.close()
        small.loop.close()
