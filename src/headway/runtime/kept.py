"""Step times kept between starts: the ladder as it was measured, and beside it what steps were seen to cost while serving.

The ladder is measured at a quiet moment; live steps are slower (changing sizes, HTTP and clients on the same cores). So the
next start promises by what was learnt. That moves slowly, in proportion to the steps that were seen, and a moment counts as at
most a quarter off: a noisy minute changes little, and is forgotten again like everything else.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import Any

from headway.scheduler.cost import CostModel

MEMORY = 10_000
"""Steps after which what was learnt before counts for 1/e."""
LARGEST_STEP = 0.25
"""A moment's costs count as at most so much above or below what was learnt before."""
BOUNDS = (0.5, 2.5)
"""What was learnt stays within these factors of what was measured: beyond them something was wrong with the machine."""
SAVE_SECONDS = 30.0
FEWEST_STEPS = 100
"""Fewer new ones aren't worth a write."""


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """measured: the ladder. learnt: None before anything was. identity: what the times depend on besides the machine;
    num_blocks, block_size: the KV pool of the engine that was measured."""

    measured: CostModel
    learnt: CostModel | None
    identity: str
    num_blocks: int
    block_size: int

    @property
    def costs(self) -> CostModel:
        """What steps really take, as far as is known."""
        return self.measured if self.learnt is None else self.learnt


def path_of(folder: Path, identity: str) -> Path:
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"


def read(path: Path) -> KeptTimes | None:
    """None for a file that is missing or holds no step times."""
    try:
        data = json.loads(path.read_text())
        learnt = data.get("learnt")
        return KeptTimes(
            CostModel.from_dict(data),
            None if learnt is None else CostModel.from_dict(learnt),
            str(data["identity"]),
            int(data["num_blocks"]),
            int(data["block_size"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write(path: Path, kept: KeptTimes) -> None:
    """As write_json."""
    data: dict[str, Any] = {"identity": kept.identity, "num_blocks": kept.num_blocks, "block_size": kept.block_size}
    data |= kept.measured.to_dict()
    if kept.learnt is not None:
        data["learnt"] = kept.learnt.to_dict()
    write_json(path, data)


def write_json(path: Path, data: Any) -> None:
    """Whole or not at all. Best effort: a cache folder that can't be written costs some seconds at the next start, no more."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(data))
        part.replace(path)
    except OSError:
        return


def newest(folder: Path, sha256: str) -> KeptTimes | None:
    """The step times of the model with this digest as it was last measured or served; None if it never was."""
    found: tuple[float, KeptTimes] | None = None
    for path in folder.glob("*.json"):
        kept = read(path)
        if kept is not None and sha256 in kept.identity.split():
            at = path.stat().st_mtime
            if found is None or at > found[0]:
                found = at, kept
    return None if found is None else found[1]


def blend(before: CostModel, seen: CostModel, share: float, measured: CostModel) -> CostModel:
    """What was learnt `before`, moved by `share` of the way to what is `seen` now, within the bounds that `measured` sets.
    All three have the same knots."""

    def toward(old: float, new: float, basis: float) -> float:
        step = max(-LARGEST_STEP * old, min(LARGEST_STEP * old, new - old))
        return max(BOUNDS[0] * basis, min(BOUNDS[1] * basis, old + share * step))

    curves = zip(before.curve(), seen.curve(), measured.curve(), strict=True)
    return CostModel(
        [(n, toward(old, new, basis)) for (n, old), (_, new), (_, basis) in curves],
        toward(before.attended, seen.attended, measured.attended),
        toward(before.sampled, seen.sampled, measured.sampled),
        per_change=toward(before.change, seen.change, measured.change),
        grid=measured.grid,
    )


class Keeper:
    """Saves what a cost model learns: every SAVE_SECONDS, so that a process that is killed loses little, and at the end. Times
    that were measured anew or thrown away meanwhile are respected: nothing is learnt beside a file that is gone."""

    def __init__(self, path: Path, costs: CostModel) -> None:
        self._path = path
        self._costs = costs
        self._saved = costs.num_observed
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headway-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Save once more, and end."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self.save()

    def save(self) -> None:
        seen = self._costs.num_observed
        if seen - self._saved < FEWEST_STEPS:
            return
        kept = read(self._path)
        if kept is None or _knots(kept.measured) != _knots(self._costs):
            return
        share = 1.0 - exp(-(seen - self._saved) / MEMORY)
        write(self._path, replace(kept, learnt=blend(kept.costs, self._costs, share, kept.measured)))
        self._saved = seen

    def _run(self) -> None:
        while not self._ending.wait(SAVE_SECONDS):
            self.save()


def _knots(costs: CostModel) -> list[int]:
    return [tokens for tokens, _ in costs.curve()]
