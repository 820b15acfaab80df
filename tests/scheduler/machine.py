"""A made-up machine for scheduler tests: it runs steps on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Callable

from headway.modes import Mode, ModeName, Modes
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.sizes import Grid
from headway.scheduler.step import Row, Step

CURVE = [(1, 0.010), (4, 0.011), (8, 0.0135), (16, 0.0185), (32, 0.0265), (64, 0.045), (128, 0.080), (256, 0.150)]


def costs() -> CostModel:
    return CostModel(CURVE, 0.9e-6, 1e-5, per_change=0.0045, grid=Grid(((64, 4), (4096, 16))))


def modes(
    max_rows: int = 32,
    fast_rows: int = 2,
    standard: float = 13.0,
    fast: float = 32.5,
    waiting: int = 1000,
    fast_waiting: int | None = None,
) -> Modes:
    return Modes(
        Mode(ModeName.STANDARD, standard, max_rows, waiting, 2.0),
        Mode(ModeName.FAST, fast, fast_rows, waiting if fast_waiting is None else fast_waiting, 0.3),
    )


class Memory:
    """What the engine would have in its KV blocks. KV depends on all tokens up to its position, and so does the mark that
    stands for it here: the same mark means the same past."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self._size = block_size
        self._blocks = [[0] * block_size for _ in range(num_blocks)]
        self._marks: dict[str, list[int]] = {}

    def run(self, step: Step) -> None:
        """Make the copies, write what the step computes, and see that every row's past is in its blocks, unharmed."""
        held = {block for row in step.rows for block in row.request.blocks}
        for copy in step.copies:
            assert copy.destination in held, "a copy for nobody"
            self._blocks[copy.destination][: copy.num_tokens] = self._blocks[copy.source][: copy.num_tokens]
        for row in step.rows:
            start = row.request.num_computed
            self._put(row.request, start, self._marks_of(row)[start : start + row.num_tokens])
        for row in step.rows:
            end = row.request.num_computed + row.num_tokens
            marks = [mark for block in row.request.blocks for mark in self._blocks[block]]
            assert marks[:end] == self._marks_of(row)[:end], "a row's past is not in its blocks"

    def _put(self, request: Request, start: int, marks: list[int]) -> None:
        for at, mark in enumerate(marks, start):
            self._blocks[request.blocks[at // self._size]][at % self._size] = mark

    def _marks_of(self, row: Row) -> list[int]:
        """Of the request's tokens and the row's drafts."""
        marks = self._marks.setdefault(row.request.id, [])
        _extend(marks, row.request.tokens[len(marks) :])
        with_drafts = list(marks)
        _extend(with_drafts, row.request.drafts[: row.num_drafts])
        return with_drafts


def _extend(marks: list[int], tokens: list[int]) -> None:
    for token in tokens:
        marks.append(hash((marks[-1] if marks else 0, token)))


class Machine:
    """Scheduler, pool and a clock that moves by what each step costs (times a seeded noise factor)."""

    def __init__(self, *, num_blocks: int = 4000, block_size: int = 32, noise: float = 0.0, **mode_settings: float) -> None:
        self.modes = modes(**mode_settings)  # type: ignore[arg-type]
        self.pool = BlockPool(num_blocks, block_size)
        self.memory = Memory(num_blocks, block_size)
        self.scheduler = Scheduler(self.modes, self.pool, costs(), Limits())
        self.true = costs()
        self.rng = random.Random(0)
        self.noise = noise
        self.now = 0.0
        self.device_seconds = 0.0
        self.finished: list[Request] = []
        self.num_tokens = 0
        self._made = 0
        self.next_token: Callable[[Request, int], int] = lambda request, offset: self.rng.randrange(50_000)

    def request(
        self, mode: ModeName = ModeName.STANDARD, *, prompt: int | list[int] = 60, out: int = 32, pace: float = 0.0
    ) -> Request:
        self._made += 1
        m = self.modes[mode]
        tokens = prompt if isinstance(prompt, list) else self.random_tokens(prompt)
        r = Request(f"r{self._made}", mode, pace or m.pace, self.now, self.now + m.ttft_target, tokens, out)
        self.scheduler.add(r, self.now)
        return r

    def random_tokens(self, n: int) -> list[int]:
        return [self.rng.randrange(50_000) for _ in range(n)]

    def step(self) -> Step | None:
        """Plan, run and complete one step."""
        step = self.scheduler.plan(self.now)
        if step is None:
            return None
        for row in step.rows:  # the row's blocks cover what it computes
            assert len(row.request.blocks) * self.pool.block_size >= row.request.num_computed + row.num_tokens
        self.memory.run(step)
        seconds = self.true.seconds(step.size, step.context, step.num_samples) + step.changes * self.true.change
        seconds *= self.rng.lognormvariate(0, self.noise)
        self.now += seconds
        self.device_seconds += seconds
        received = self.scheduler.complete(step, self.sample(step), self.now, seconds)
        self.num_tokens += sum(r.num_tokens for r in received)
        self.finished += [r.request for r in received if r.ended]
        return step

    def sample(self, step: Step) -> list[list[int]]:
        """Tokens for each row that samples: its drafts as far as the model agrees, and one more."""
        rows: list[list[int]] = []
        for row in step.rows:
            if row.samples:
                tokens = [self.next_token(row.request, 0)]
                while len(tokens) <= row.num_drafts and tokens[-1] == row.request.drafts[len(tokens) - 1]:
                    tokens.append(self.next_token(row.request, len(tokens)))
                rows.append(tokens)
        return rows

    def run(self, seconds: float, each_step: Callable[[], None] = lambda: None) -> None:
        end = self.now + seconds
        while self.now < end:
            each_step()
            if self.step() is None:
                self.now = end

    def run_dry(self, most: int = 100_000) -> None:
        """Until nothing is left to do."""
        for _ in range(most):
            if self.step() is None:
                return
        raise AssertionError("the scheduler never came to an end")


def speed(r: Request) -> float:
    """Tokens/s from the first token on."""
    assert r.first_token_at is not None
    assert r.last_token_at is not None
    return (r.num_output - 1) / (r.last_token_at - r.first_token_at)
