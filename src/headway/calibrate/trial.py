"""Is the cost model right? Steps as a server would make them, timed and compared with what was predicted."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from headway.engines.base import Engine
from headway.modes import Mode, Modes
from headway.runtime.turn import begin
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample_verifying
from headway.sampling.state import SamplingState
from headway.scheduler.admission import Refused
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel, Observation, median_and_p95
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.step import Step

STEPS = 200
ACT = 25
"""Steps after which another number of requests is wanted."""
PROMPT = (8, 512)
OUTPUT = (32, 128)
"""Tokens, from and to; prompts by their logarithm, so that short ones are as frequent as long ones."""


@dataclass(frozen=True, slots=True)
class Error:
    """|measured / predicted - 1| over `steps` steps. median, p95: with what was learnt from each step before the next one, as a
    server does; ladder_median, ladder_p95: of the ladder alone."""

    steps: int
    median: float
    p95: float
    ladder_median: float
    ladder_p95: float


def trial(
    engine: Engine,
    costs: CostModel,
    modes: Modes,
    limits: Limits,
    *,
    speculation: bool,
    steps: int = STEPS,
    seed: int = 1,
    advance: Callable[[float], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Error:
    """Serve made-up requests of both modes, whose number changes: full and empty steps, chunks of prompts beside decoding rows,
    short and long contexts. Writes over KV blocks; `costs` stays as it is. advance: called with 1 after each step."""
    learning = copy.deepcopy(costs)
    pool = BlockPool(engine.info.num_blocks, engine.info.block_size)
    scheduler = Scheduler(modes, pool, learning, limits, speculation=speculation)
    traffic = _Traffic(scheduler, modes, engine, random.Random(seed))
    seen: list[Observation] = []
    while len(seen) < steps:
        traffic.come(len(seen), clock())
        begun = clock()
        step = scheduler.plan(begun)
        assert step is not None, "there is always a request"
        tokens = _run(engine, step, traffic)
        ended = clock()
        seen.append(step.observed(ended - begun))
        scheduler.complete(step, tokens, ended, ended - begun)
        advance(1)
    alone = median_and_p95(o.seconds / costs.expected(o) - 1.0 for o in seen)
    return Error(steps, *learning.error(), *alone)


def _run(engine: Engine, step: Step, traffic: _Traffic) -> list[list[int]]:
    """What EngineLoop does with a step, less the handing out of its tokens."""
    begin(engine, step)
    logits = engine.wait()
    rows = [row for row in step.rows if row.samples]
    if not rows:
        return []
    drafts = [row.request.drafts[: row.num_drafts] for row in rows]
    sampled = sample_verifying(logits, [traffic.sampling[row.request.id] for row in rows], drafts)
    return [[token.token for token in tokens] for tokens in sampled]


class _Traffic:
    """Keeps as many requests in the scheduler as the act of the play wants. sampling: of each request, by its id."""

    def __init__(self, scheduler: Scheduler, modes: Modes, engine: Engine, rng: random.Random) -> None:
        self.sampling: dict[str, SamplingState] = {}
        self._scheduler = scheduler
        self._modes = modes
        self._info = engine.info
        self._rng = rng
        self._act = -1
        self._wanted: list[tuple[Mode, int]] = []

    def come(self, step: int, now: float) -> None:
        if step // ACT != self._act:
            self._act = step // ACT
            standard, fast = self._modes
            self._wanted = [(standard, self._rng.randint(1, standard.max_rows)), (fast, self._rng.randint(0, fast.max_rows))]
        for mode, wanted in self._wanted:
            for _ in range(wanted - sum(self._scheduler.count(mode.name))):
                try:
                    self._scheduler.add(self._request(mode, now), now)
                except Refused:  # more than can be promised at the moment
                    break

    def _request(self, mode: Mode, now: float) -> Request:
        rng, context = self._rng, self._info.context_length
        output = min(rng.randint(*OUTPUT), context // 4)
        prompt = min(int(PROMPT[0] * (PROMPT[1] / PROMPT[0]) ** rng.random()), context - output)
        tokens = [rng.randrange(self._info.vocab_size) for _ in range(prompt)]
        request = Request(f"{len(self.sampling)}", mode.name, mode.pace, now, now + mode.ttft_target, tokens, output)
        self.sampling[request.id] = SamplingState(SamplingParams(temperature=0.0), tokens)
        return request
