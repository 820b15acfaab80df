"""Have a model answer prompts, many at a time, and keep what it knew at each token."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from headway.distill.answers import Answer, Known
from headway.distill.dialogue import Dialogue
from headway.distill.known import Keep
from headway.distill.prompts import Prompts
from headway.engines.base import BatchRow, Engine
from headway.errors import RequestError, UsageError
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample
from headway.sampling.state import SamplingState

ROWS = 64
ROW_TOKENS = 1024
"""Room for a prompt and its answer."""
STEP_TOKENS = 192
LONGEST_ANSWER, SHORTEST_LIMIT, SHORTEST_ANSWER = 320, 80, 3
"""Tokens: an answer is cut at a limit drawn between the first two, and dropped if it is shorter than the third."""
LONGEST_QUESTION = 60
GREEDY_SHARE = 0.6
TEMPERATURES = (0.5, 0.8, 1.0)
MAX_USELESS = 1_000
"""Prompts in a row that come to nothing, after which something must be wrong."""

_CIRCLE_TOKENS, _LONGEST_CIRCLE = 24, 16


class Collector:
    """Answers come as they end, in no order, but each depends on its prompt's number and the seed alone, as far as the engine
    is exact."""

    def __init__(self, engine: Engine, dialogue: Dialogue, keep: Keep, seed: int = 0) -> None:
        """engine: opened with the taps that `keep` needs; nobody else runs it meanwhile."""
        self._keep = keep
        self._engine = engine
        self._dialogue = dialogue
        self._seed = seed
        self._size = min(ROW_TOKENS, engine.info.context_length)
        self._longest_prompt = self._size - min(LONGEST_ANSWER, self._size // 2)
        self._blocks_each = -(-self._size // engine.info.block_size)
        self._num_rows = max(1, min(ROWS, engine.info.num_blocks // self._blocks_each))
        self._useless = 0

    def held_out(self, prompts: Prompts, most: int) -> Iterator[list[Answer]]:
        """Greedy answers of up to `most` tokens to the prompts held out; what ended with each step."""
        return self._run(
            self._greedy(number, self._dialogue.prompt(m), most) for number, m in enumerate(prompts.held_out) if self._fits(m)
        )

    def answers(self, prompts: Prompts, numbers: Iterator[int]) -> Iterator[list[Answer]]:
        """Answers to the prompts of these numbers; what ended with each step. Raises UsageError if prompt after prompt comes to
        nothing."""
        return self._run(row for number in numbers if (row := self._row(prompts, number)) is not None)

    def _fits(self, messages: list[dict[str, object]]) -> bool:
        try:
            return len(self._dialogue.prompt(messages)) <= self._longest_prompt
        except RequestError:
            return False

    def _greedy(self, number: int, prompt: list[int], most: int) -> _Row:
        return _Row(number, prompt, SamplingState(SamplingParams(temperature=0.0), ()), min(most, self._size - len(prompt)))

    def _row(self, prompts: Prompts, number: int) -> _Row | None:
        r = random.Random(f"answer {self._seed} {number}")
        prompt = prompts.at(number)
        temperature = r.choice(TEMPERATURES)
        if r.random() < GREEDY_SHARE and not prompt.again:
            temperature = 0.0
        limit = r.randint(SHORTEST_LIMIT, LONGEST_ANSWER)
        params = SamplingParams(temperature=temperature, seed=r.getrandbits(62))
        if prompt.messages is not None:
            return self._answering(number, prompt.messages, params, limit)
        if self._dialogue.opening is None:  # whatever the model says by itself
            freely = SamplingParams(temperature=1.0, seed=params.seed)
            return _Row(number, self._dialogue.prompt([]), SamplingState(freely, ()), limit)
        asking = SamplingState(SamplingParams(temperature=1.0, seed=r.getrandbits(62)), ())
        row = _Row(number, list(self._dialogue.opening), asking, LONGEST_QUESTION)
        row.then = (params, limit)
        return row

    def _answering(self, number: int, messages: list[dict[str, object]], params: SamplingParams, limit: int) -> _Row | None:
        try:
            tokens = self._dialogue.prompt(messages)
        except RequestError as error:
            self._was_useless(error.message)
            return None
        if len(tokens) > self._longest_prompt:
            self._was_useless(f"a prompt has {len(tokens)} tokens, {self._longest_prompt} are the most")
            return None
        return _Row(number, tokens, SamplingState(params, ()), min(limit, self._size - len(tokens)))

    def _was_useless(self, why: str) -> None:
        self._useless += 1
        if self._useless >= MAX_USELESS:
            raise UsageError(f"{self._useless} prompts in a row could not be used; the last one: {why}")

    def _run(self, waiting: Iterator[_Row]) -> Iterator[list[Answer]]:
        free = [list(range(i * self._blocks_each, (i + 1) * self._blocks_each)) for i in range(self._num_rows)]
        rows: list[_Row] = []
        while True:
            while free and (row := next(waiting, None)) is not None:
                row.blocks = free.pop()
                rows.append(row)
            if not rows:
                return
            ended = []
            for row in self._step(rows):
                answer, onward = self._after(row)
                if answer is not None:
                    ended.append(answer)
                if onward is not row:
                    rows.remove(row)
                    if onward is not None:
                        onward.blocks = row.blocks
                        rows.append(onward)
                    else:
                        free.append(row.blocks)
            yield ended

    def _step(self, rows: Sequence[_Row]) -> list[_Row]:
        """One step of as many rows as fit: those that decode first, then prompts. Returns those that got a token."""
        batch: list[BatchRow] = []
        sampling: list[_Row] = []
        room = STEP_TOKENS
        for row in sorted(rows, key=lambda row: len(row.tokens) - row.done):
            n = min(len(row.tokens) - row.done, room)
            if n == 0:
                break
            room -= n
            samples = row.done + n == len(row.tokens)
            batch.append(BatchRow(row.tokens[row.done : row.done + n], row.done, row.blocks, int(samples)))
            row.done += n
            if samples:
                sampling.append(row)
        self._engine.start(batch, self._engine.info.grid.up(STEP_TOKENS - room))
        logits = self._engine.wait()
        if not sampling:
            return []
        all_known = self._keep.of(self._engine, logits)  # before sampling, which changes logits
        tokens = sample(logits, [row.state for row in sampling])
        for row, token, known in zip(sampling, tokens, all_known, strict=True):
            row.tokens.append(token.token)
            if row.then is None:
                row.known.append(known)
        return sampling

    def _after(self, row: _Row) -> tuple[Answer | None, _Row | None]:
        """What became of a row that got a token: its answer if it has ended with one, and who has its place now."""
        output = row.tokens[row.num_prompt :]
        if row.then is not None:
            if self._dialogue.is_asked(output):
                return None, self._asked(row, output)
            return None, row if len(output) < row.most else self._asked(row, ())
        if output[-1] not in self._dialogue.eos_ids and len(output) < row.most and not runs_in_circles(output):
            return None, row
        if len(output) < SHORTEST_ANSWER:
            self._was_useless("the answer was too short")
            return None, None
        self._useless = 0
        return Answer(row.number, row.tokens[: row.num_prompt], output, np.stack(row.known)), None

    def _asked(self, row: _Row, output: Sequence[int]) -> _Row | None:
        question = self._dialogue.question(output)
        if question is None or row.then is None:
            self._was_useless("the model made up no question")
            return None
        return self._answering(row.number, [{"role": "user", "content": question}], *row.then)


class _Row:
    """tokens: the prompt's and what came, of which `done` are computed. most: output tokens. then: of a row in which the model
    makes up a question, how to answer it."""

    def __init__(self, number: int, prompt: list[int], state: SamplingState, most: int) -> None:
        self.number = number
        self.tokens = list(prompt)
        self.num_prompt = len(prompt)
        self.state = state
        self.most = most
        self.then: tuple[SamplingParams, int] | None = None
        self.done = 0
        self.blocks: list[int] = []
        self.known: list[Known] = []


def runs_in_circles(tokens: Sequence[int]) -> bool:
    """Whether the last tokens are the ones before them over again: nothing is to be learned from such an answer."""
    tail = tokens[-_CIRCLE_TOKENS:]
    if len(tokens) < _CIRCLE_TOKENS + _LONGEST_CIRCLE:
        return False
    return any(tail == tokens[-_CIRCLE_TOKENS - period : -period] for period in range(1, _LONGEST_CIRCLE + 1))
