"""`headway serve --record FILE`: who asked for what, when, and what came of it, as a trace that `headway simulate` reads.

No text and no tokens are kept. Parts of prompts are named by hashes with a salt that is thrown away: they show which prompts
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
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
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
from headway.simulate.trace import MACHINE

log = logging.getLogger("headway.record")

FLUSH_SECONDS = 1.0
PART_TOKENS = 8
"""Of a prompt that an id stands for: as finely as the prefix cache finds beginnings (see blocks.py, in blocks of 32)."""
SUM_UP_EVERY = 20_000
"""Steps that are kept one by one at the most: some ten minutes."""


def open_record(path: Path) -> TextIO:
    """The file to append to. Raises UsageError if it can't be written."""
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--record: {path} can't be written: {error.strerror or error}") from None


class MachineSeen:
    """What steps took while requests were served, over what they should have taken by the costs at the beginning: by the
    second, by their size, and how far single steps were from both.

    costs: of the beginning. (What a scheduler has learnt since is no average: it follows the moment, and says little about
    sizes that are rare.)
    """

    def __init__(self, costs: CostModel, info: EngineInfo) -> None:
        self._costs = CostModel.from_dict(costs.to_dict())
        self._info = info
        self._knots = [tokens for tokens, _ in self._costs.curve()]
        self._steps: list[tuple[float, Observation]] = []  # with their ends, since they were last summed up
        self._begin: float | None = None
        # What steps took over what they should have taken; by size: should have taken in their second.
        self._all = Share()
        self._by_second: list[Share] = []
        self._by_size = [Share() for _ in self._knots]
        self._squares = 0.0
        self._counted = 0

    def stepped(self, at: float, seen: Observation, arrival: float) -> None:
        """A step has ended. at: in seconds; arrival: of a request in it, by the same clock."""
        if self._begin is None:
            self._begin = arrival
        self._steps.append((at, seen))

    @property
    def is_full(self) -> bool:
        """Whether it is time to sum up."""
        return len(self._steps) >= SUM_UP_EVERY

    def summing_up(self) -> Callable[[], None]:
        """What enters the steps so far into the sums: some 50 ms of work for a full list, so it is for another thread."""
        steps, self._steps = self._steps, []
        return partial(self._sum_up, steps)

    def to_dict(self) -> dict[str, Any]:
        """As machine.py of the simulator reads it: costs with the step times of each size as they were on average. slower: of
        each second from the first arrival on, what steps took over what they take on average; 1 where there were none. noise:
        the standard deviation of the logarithm of what single steps took over what such steps took in their second."""
        self.summing_up()()
        costs = self._costs
        level = self._all.ratio
        slower = [round(share.ratio / level, 3) if share.expected else 1.0 for share in self._by_second]
        sizes = zip(costs.curve(), self._by_size, strict=True)
        seen = CostModel(
            [(tokens, level * share.ratio * seconds) for (tokens, seconds), share in sizes],
            level * costs.per_context,
            level * costs.per_sample,
            per_change=level * costs.per_change,
            grid=costs.grid,
        )
        return seen.to_dict() | {
            "noise": round((self._squares / self._counted) ** 0.5, 4) if self._counted else 0.0,
            "slower": slower,
            "num_blocks": self._info.num_blocks,
            "block_size": self._info.block_size,
        }

    def _sum_up(self, steps: Sequence[tuple[float, Observation]]) -> None:
        begin = self._begin or 0.0
        expected = [self._costs.expected(seen) for _, seen in steps]
        seconds = [int(at - begin) for at, _ in steps]
        sizes = [min(bisect_left(self._knots, seen.tokens), len(self._knots) - 1) for _, seen in steps]
        for (_, seen), second, should in zip(steps, seconds, expected, strict=True):
            self._by_second += [Share() for _ in range(second + 1 - len(self._by_second))]
            self._by_second[second].add(seen.seconds, should)
            self._all.add(seen.seconds, should)
        for (_, seen), second, size, should in zip(steps, seconds, sizes, expected, strict=True):
            self._by_size[size].add(seen.seconds, should * self._by_second[second].ratio)
        for (_, seen), second, size, should in zip(steps, seconds, sizes, expected, strict=True):
            usual = should * self._by_second[second].ratio * self._by_size[size].ratio
            self._squares += math.log(seen.seconds / usual) ** 2
            self._counted += 1


@dataclass(slots=True)
class Share:
    """took over expected, summed up."""

    took: float = 0.0
    expected: float = 0.0

    def add(self, took: float, expected: float) -> None:
        self.took += took
        self.expected += expected

    @property
    def ratio(self) -> float:
        """1 before there is anything."""
        return self.took / self.expected if self.expected else 1.0


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
        self._lines: SimpleQueue[Callable[[], dict[str, Any] | None] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="headway-record", daemon=True)
        self._writer.start()

    def ended(self, request: Request, outcome: str, usage: Usage, timing: Timing) -> None:
        """A request has left the engine loop. Called in the engine's thread. One that was withdrawn before anything was
        computed for it leaves no line: its client has gone, or it has come again at standard."""
        if outcome == "cancelled" and request.started_at is None:
            return
        self._lines.put(lambda: self._ended(request, outcome, usage, timing))

    def stepped(self, step: Step, ended: float, seconds: float) -> None:
        """A step has ended. Called in the engine's thread."""
        self._machine.stepped(ended, step.observed(seconds), step.rows[0].request.arrival)
        if self._machine.is_full:
            self._lines.put(self._machine.summing_up())

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
            "prefix_tokens": PART_TOKENS,
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
            "prefix_tokens": PART_TOKENS,
            **({} if request.pace is None else {"pace": request.pace}),
            "finish": "refused",
            "seconds": 0.0,
        }

    def _key(self, key: str) -> str:
        """The same for the same key, in this recording."""
        return hashlib.blake2b(key.encode(), digest_size=4, key=self._salt).hexdigest()

    def _prefix(self, prompt: Sequence[int]) -> list[int]:
        """An id of 48 bits for each whole part, which stands for it and all before it."""
        digest, ids = self._salt, []
        for start in range(0, len(prompt) - PART_TOKENS + 1, PART_TOKENS):
            part = array("q", prompt[start : start + PART_TOKENS]).tobytes()
            digest = hashlib.blake2b(part, digest_size=6, key=digest).digest()
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
            if (written := line()) is not None:
                works = works and self._tried(partial(self._file.write, json.dumps(written) + "\n"))

    def _tried(self, write: Callable[[], object]) -> bool:
        """Whether it could be done. Serving goes on without a recording."""
        try:
            write()
        except OSError as error:
            log.error("recording has stopped: %s can't be written: %s", self._file.name, error.strerror or error)
            return False
        return True
