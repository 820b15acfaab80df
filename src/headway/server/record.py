"""`headway serve --record FILE`: who asked for what, when, and what came of it, as a trace that `headway simulate` reads.

No text and no tokens are kept. Blocks of prompts are named by hashes with a salt that is thrown away: they show which prompts
begin alike, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import fmean
from typing import Any, TextIO

from headway.engines.base import EngineInfo
from headway.errors import UsageError
from headway.modes import ModeName, Modes
from headway.runtime.api import GenerateRequest, Timing, Usage
from headway.scheduler.cost import CostModel
from headway.scheduler.request import Request
from headway.simulate.trace import MACHINE, PREFIX_TOKENS

log = logging.getLogger("headway.record")

FLUSH_SECONDS = 1.0
ERROR_EVERY = 32
"""Ends of requests between two looks at how far predictions are off."""


def open_record(path: Path) -> TextIO:
    """The file to append to. Raises UsageError if it can't be written."""
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--record: {path} can't be written: {error.strerror or error}") from None


class MachineSeen:
    """What steps cost on average while requests were served, and how far single ones were from what was expected.

    costs: the scheduler's own, which follows every change of the machine's speed.
    """

    def __init__(self, costs: CostModel, info: EngineInfo) -> None:
        self._costs = costs
        self._info = info
        self._looks = 0
        self._base = [0.0 for _ in costs.curve()]
        self._per_context = self._per_sample = 0.0
        self._errors: list[float] = []

    def look(self) -> None:
        """Take the costs of the moment into the average."""
        costs, self._looks = self._costs, self._looks + 1
        for n, (_, seconds) in enumerate(costs.curve()):
            self._base[n] += seconds
        self._per_context += costs.drift * costs.per_context
        self._per_sample += costs.drift * costs.per_sample
        if self._looks % ERROR_EVERY == 1:  # it sorts a window of errors
            self._errors.append(costs.error()[0])

    def to_dict(self) -> dict[str, Any]:
        """As machine.py of the simulator reads it. noise: the standard deviation of errors with such a median, if they are
        normal: half of a normal distribution lies within 0.6745 deviations."""
        if not self._looks:
            self.look()
        return {
            "base": [
                [tokens, seconds / self._looks] for (tokens, _), seconds in zip(self._costs.curve(), self._base, strict=True)
            ],
            "per_context": self._per_context / self._looks,
            "per_sample": self._per_sample / self._looks,
            "noise": round(fmean(self._errors) / 0.6745, 4),
            "num_blocks": self._info.num_blocks,
            "block_size": self._info.block_size,
        }


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
            "prefix": self._prefix(request.tokens[: request.num_prompt]),
            **own_pace,
            "served": request.mode,
            "finish": outcome,
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
            "prefix": self._prefix(request.prompt),
            **({} if request.pace is None else {"pace": request.pace}),
            "finish": "refused",
        }

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
