"""`headway serve --record FILE`: who asked for what, when, and what came of it, as a trace that `headway simulate` reads.

No text and no tokens are kept. Blocks of prompts are named by hashes with a salt that is thrown away: they show which prompts
begin alike, and nothing else. So are keys and addresses: whose requests are the same client's.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import secrets
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TextIO

from headway.engines.base import EngineInfo
from headway.errors import UsageError
from headway.modes import ModeName, Modes
from headway.runtime.api import GenerateRequest, Timing, Usage
from headway.scheduler.cost import CostModel, Observation
from headway.scheduler.request import Request
from headway.scheduler.step import Step
from headway.simulate.trace import MACHINE, PREFIX_TOKENS

log = logging.getLogger("headway.record")

FLUSH_SECONDS = 1.0
SUM_UP_EVERY = 20_000
"""Steps that are kept one by one at the most: some ten minutes."""


def open_record(path: Path) -> TextIO:
    """The file to append to. Raises UsageError if it can't be written."""
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--record: {path} can't be written: {error.strerror or error}") from None


class MachineSeen:
    """What steps cost on average while requests were served, how much slower or faster the machine was from second to second,
    and how far single steps were from that.

    costs: the scheduler's own, which follows every change of the machine's speed.
    """

    def __init__(self, costs: CostModel, info: EngineInfo) -> None:
        self._costs = costs
        self._info = info
        self._looks = 0
        self._base = [0.0 for _ in costs.curve()]
        self._per_context = self._per_sample = self._per_change = 0.0
        self._steps: list[tuple[float, Observation]] = []  # with their ends, since they were last summed up
        self._begin: float | None = None
        self._slower: list[float] = []
        self._squares = self._counted = 0.0

    def look(self) -> None:
        """Take the costs of the moment into the average."""
        costs, self._looks = self._costs, self._looks + 1
        for n, (_, seconds) in enumerate(costs.curve()):
            self._base[n] += seconds
        self._per_context += costs.drift * costs.per_context
        self._per_sample += costs.drift * costs.per_sample
        self._per_change += costs.change

    def stepped(self, at: float, seen: Observation, arrival: float) -> None:
        """A step has ended. at: in seconds; arrival: of a request in it, by the same clock."""
        if self._begin is None:
            self._begin = arrival
        self._steps.append((at, seen))
        if len(self._steps) >= SUM_UP_EVERY:
            self._sum_up()

    def average(self) -> CostModel:
        """Of what `look` has seen."""
        if not self._looks:
            self.look()
        n = self._looks
        base = [(tokens, seconds / n) for (tokens, _), seconds in zip(self._costs.curve(), self._base, strict=True)]
        return CostModel(
            base, self._per_context / n, self._per_sample / n, per_change=self._per_change / n, grid=self._costs.grid
        )

    def to_dict(self) -> dict[str, Any]:
        """As machine.py of the simulator reads it. slower: of each second from the first arrival on, what its steps took over
        what they should have taken by the costs; 1 where there were none. noise: the standard deviation of the logarithm of
        what single steps took over what they should have taken in their second."""
        self._sum_up()
        noise = (self._squares / self._counted) ** 0.5 if self._counted else 0.0
        return self.average().to_dict() | {
            "noise": round(noise, 4),
            "slower": [round(each, 3) for each in self._slower],
            "num_blocks": self._info.num_blocks,
            "block_size": self._info.block_size,
        }

    def _sum_up(self) -> None:
        """Enter the steps of whole seconds into `slower` and the noise, by the average so far."""
        costs = self.average()
        begin = self._begin or 0.0
        for second, group in groupby(self._steps, key=lambda step: int(step[0] - begin)):
            steps = [(seen.seconds, costs.expected(seen)) for _, seen in group]
            slower = sum(seconds for seconds, _ in steps) / sum(expected for _, expected in steps)
            self._slower += [1.0] * (second - len(self._slower))
            self._slower[second:] = [slower]
            for seconds, expected in steps:
                self._squares += math.log(seconds / (slower * expected)) ** 2
                self._counted += 1
        self._steps.clear()


class Recorder:
    """Appends a line for each request that ended or was refused. Lines are made and written by a thread of their own; what the
    others call takes microseconds. `at` is in Unix seconds, so that recordings in one file don't overlap.

    file: from `open_record`; closed at the end. modes: a pace is recorded where it isn't the mode's. machine: for the last
    line. clock: the engine loop's.
    """

    def __init__(self, file: TextIO, modes: Modes, machine: MachineSeen, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._modes = modes
        self._machine = machine
        self._clock = clock
        self._to_unix = time.time() - clock()
        self._salt = secrets.token_bytes(16)
        self._downgraded: set[str] = set()
        self._lines: SimpleQueue[Callable[[], dict[str, Any]] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="headway-record", daemon=True)
        self._writer.start()

    def ended(self, request: Request, outcome: str, usage: Usage, timing: Timing) -> None:
        """A request has left the engine loop. Called in the engine's thread. One that was withdrawn before anything was
        computed for it leaves no line: its client has gone, or it has come again at standard."""
        if outcome == "cancelled" and request.started_at is None:
            return
        self._machine.look()
        self._lines.put(lambda: self._ended(request, outcome, usage, timing))

    def stepped(self, step: Step, ended: float, seconds: float) -> None:
        """A step has ended. Called in the engine's thread."""
        self._machine.stepped(ended, step.observed(seconds), step.rows[0].request.arrival)

    def downgraded(self, request_ids: Iterable[str]) -> None:
        """These requests asked for fast and run at standard."""
        self._downgraded.update(request_ids)

    def refused(self, requests: Sequence[GenerateRequest]) -> None:
        """These requests, as they were asked for, found no place."""
        at = self._clock()
        for request in requests:
            self._lines.put(partial(self._refused, request, at))

    def close(self) -> None:
        """Write what is still to be written, and the machine."""
        self._lines.put(lambda: {MACHINE: self._machine.to_dict() | {"paces": {mode.name: mode.pace for mode in self._modes}}})
        self._lines.put(None)
        self._writer.join()
        self._tried(self._file.close)

    def _ended(self, request: Request, outcome: str, usage: Usage, timing: Timing) -> dict[str, Any]:
        mode = ModeName.FAST if request.id in self._downgraded else request.mode
        self._downgraded.discard(request.id)
        first, due = request.first_token_at, usage.completion_tokens - 1
        own_pace = {} if request.pace == self._modes[request.mode].pace else {"pace": request.pace}
        return {
            "at": round(request.arrival + self._to_unix, 4),
            "mode": mode,
            "prompt_tokens": request.num_prompt,
            "output_tokens": usage.completion_tokens,
            "max_tokens": request.max_tokens,
            "key": self._key(request.key),
            "prefix": self._prefix(request.tokens[: request.num_prompt]),
            **own_pace,
            "served": request.mode,
            "finish": outcome,
            "seconds": round(timing.total, 4),
            "drafted_tokens": usage.drafted_tokens,
            "accepted_tokens": usage.accepted_tokens,
            "cached_tokens": usage.cached_tokens,
            "ttft": None if first is None else round(first - request.arrival, 4),
            "tpot": round(timing.completion / due, 5) if due > 0 else None,
            "attainment": round(usage.attainment, 4),
        }

    def _refused(self, request: GenerateRequest, at: float) -> dict[str, Any]:
        return {
            "at": round(at + self._to_unix, 4),
            "mode": request.mode,
            "prompt_tokens": len(request.prompt),
            "output_tokens": None,
            "max_tokens": request.max_tokens,
            "key": self._key(request.key),
            "prefix": self._prefix(request.prompt),
            **({} if request.pace is None else {"pace": request.pace}),
            "finish": "refused",
            "seconds": 0.0,
        }

    def _key(self, key: str) -> str:
        """The same for the same key, in this recording."""
        return hashlib.blake2b(key.encode(), digest_size=4, key=self._salt).hexdigest()

    def _prefix(self, prompt: Sequence[int]) -> list[int]:
        """An id of 48 bits for each whole block, which stands for it and all before it."""
        digest, ids = self._salt, []
        for start in range(0, len(prompt) - PREFIX_TOKENS + 1, PREFIX_TOKENS):
            block = array("q", prompt[start : start + PREFIX_TOKENS]).tobytes()
            digest = hashlib.blake2b(block, digest_size=6, key=digest).digest()
            ids.append(int.from_bytes(digest, "big"))
        return ids

    def _write(self) -> None:
        works = True
        while True:
            try:
                line = self._lines.get(timeout=FLUSH_SECONDS)
            except Empty:
                works = works and self._tried(self._file.flush)
                continue
            if line is None:
                return
            text = json.dumps(line()) + "\n"
            works = works and self._tried(partial(self._file.write, text))

    def _tried(self, write: Callable[[], object]) -> bool:
        """Whether it could be done. Serving goes on without a recording."""
        try:
            write()
        except OSError as error:
            log.error("recording has stopped: %s can't be written: %s", self._file.name, error.strerror or error)
            return False
        return True
