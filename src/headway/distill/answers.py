"""Answers of a model on disk, with what it knew at each of their tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.distill.whole_file import write_whole
from headway.errors import UsageError

Halves = NDArray[np.float16]
Known = NDArray[Any]
"""One entry per token, of whatever kind is kept (see known.py)."""

SHARD_TOKENS = 20_000
FACTS = "answers.json"
_KNOWN, _REST = ".known.npy", ".answers.npz"


@dataclass(frozen=True, slots=True)
class Answer:
    """number: of the prompt. prompt: its tokens. tokens: the answer's, the end token included if it came. known: what the
    model knew when it chose each of them [tokens, ...]."""

    number: int
    prompt: list[int]
    tokens: list[int]
    known: Known


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of a store, one after the other. tokens: [n]; sequence: of which answer each is [n]. known: [n, ...]
    in pieces, which lie on disk until they are read. prompts: of each answer."""

    tokens: NDArray[np.int64]
    sequence: NDArray[np.int64]
    known: Sequence[Known]
    prompts: Sequence[NDArray[np.int32]] = ()
    _begins: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        begins = np.cumsum([0, *(len(piece) for piece in self.known)])
        object.__setattr__(self, "_begins", begins)

    def rows(self, places: NDArray[np.int64]) -> Known:
        """What was known at some tokens [places, ...]."""
        first = self.known[0]
        out = np.empty((len(places), *first.shape[1:]), first.dtype)
        pieces = np.searchsorted(self._begins, places, "right") - 1
        for i in np.unique(pieces):
            here = pieces == i
            out[here] = self.known[i][places[here] - self._begins[i]]
        return out


class AnswerStore:
    """A folder of shards, each complete or absent. Usable as `len` (answers) and with `numbers` of the prompts answered."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        """Open the folder, or make it. facts: what its answers depend on. Raises UsageError if it holds other ones, and
        OSError."""
        self.folder = folder
        self.num_tokens = 0
        self.numbers: set[int] = set()
        self._fresh: list[Answer] = []
        self._fresh_tokens = 0
        folder.mkdir(parents=True, exist_ok=True)
        _check(folder / FACTS, facts)
        self._shards = sorted(path.name.removesuffix(_REST) for path in folder.glob(f"*{_REST}"))
        for shard in self._shards:
            rest = self._read(shard)
            self.num_tokens += len(rest["tokens"])
            self.numbers.update(rest["numbers"].tolist())

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, answer: Answer) -> None:
        """Kept in memory until there are enough for a shard. Raises OSError."""
        self._fresh.append(answer)
        self._fresh_tokens += len(answer.tokens)
        self.num_tokens += len(answer.tokens)
        self.numbers.add(answer.number)
        if self._fresh_tokens >= SHARD_TOKENS:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory. Raises OSError."""
        if not self._fresh:
            return
        name = f"{int(self._shards[-1]) + 1 if self._shards else 1:05}"
        fresh = self._fresh
        write_whole(self.folder / (name + _KNOWN), lambda file: np.save(file, np.concatenate([a.known for a in fresh])))
        arrays = {
            "numbers": np.array([a.number for a in fresh], np.int64),
            "prompts": np.array([token for a in fresh for token in a.prompt], np.int32),
            "prompt_lengths": np.array([len(a.prompt) for a in fresh], np.int32),
            "tokens": np.array([token for a in fresh for token in a.tokens], np.int32),
            "lengths": np.array([len(a.tokens) for a in fresh], np.int32),
        }
        # Last: with this file the shard is there.
        write_whole(self.folder / (name + _REST), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
        self._shards.append(name)
        self._fresh, self._fresh_tokens = [], 0

    def load(self) -> Answers:
        """All that was flushed. Raises UsageError for a damaged shard."""
        rests = [self._read(shard) for shard in self._shards]
        lengths = np.concatenate([rest["lengths"] for rest in rests])
        return Answers(
            tokens=np.concatenate([rest["tokens"] for rest in rests]).astype(np.int64),
            sequence=np.repeat(np.arange(len(lengths)), lengths),
            known=[np.load(self.folder / (shard + _KNOWN), mmap_mode="r") for shard in self._shards],
            prompts=[prompt for rest in rests for prompt in np.split(rest["prompts"], np.cumsum(rest["prompt_lengths"])[:-1])],
        )

    def _read(self, shard: str) -> dict[str, NDArray[np.int32]]:
        path = self.folder / (shard + _REST)
        try:
            with np.load(path) as file:
                rest = {name: file[name] for name in file.files}
            known = np.load(self.folder / (shard + _KNOWN), mmap_mode="r")
            if len(known) != len(rest["tokens"]) or rest["lengths"].sum() != len(rest["tokens"]):
                raise ValueError("its parts differ in length")
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise UsageError(f"{path} is damaged ({error}): delete this folder, or give another --work") from None
        return rest


def _check(path: Path, facts: dict[str, Any]) -> None:
    if not path.exists():
        write_whole(path, lambda file: file.write(json.dumps(facts, indent=2).encode()))
        return
    try:
        known = json.loads(path.read_bytes())
    except ValueError:
        known = {}
    for key, value in facts.items():
        if known.get(key) != value:
            raise UsageError(
                f"{path.parent} holds answers of another kind ({key}: {known.get(key)}, now {value}): "
                f"give another --work, or delete it"
            )
