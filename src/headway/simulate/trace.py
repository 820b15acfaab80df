"""Traces: who asked for what, and when. Three formats are read; `headway serve --record` writes the first of them.

- headway's own, JSON lines: `{"at": 0.25, "mode": "fast", "prompt_tokens": 120, "output_tokens": 64}`, if known with `pace`,
  `max_tokens`, `key`, `prefix` (ids of the prompt's leading blocks of `prefix_tokens` tokens, the same for the same content),
  `seconds` (from `at` to the end) and `drafted_tokens` and `accepted_tokens`. `at` is in seconds from any beginning. An
  `output_tokens` of null is unknown: the request was refused. Other keys are ignored.
- Mooncake's, JSON lines: `{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}`: milliseconds,
  and an id for each block of 512 prompt tokens, the last perhaps not full (kvcache-ai/Mooncake, FAST25-release/traces).
- Azure's, CSV: `TIMESTAMP,ContextTokens,GeneratedTokens`, the time as a date (Azure/AzurePublicDataset, LLM inference traces).
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headway.errors import UsageError
from headway.modes import ModeName

PREFIX_TOKENS = 32
MOONCAKE_TOKENS = 512
AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
UNKNOWN = -1
MACHINE = "machine"
"""Key of a line that tells no arrival, but what a recording was made on: see machine.py."""
_MACHINE_LINE = f'{{"{MACHINE}":'


@dataclass(slots=True)
class Arrival:
    """A request before anybody has served it; not frozen only because there may be millions. at: seconds since the trace's
    first one; output_tokens: how long its answer is, max_tokens: how long it might have been (None: no longer). mode: None
    where the trace names none. prefix: ids of the prompt's leading blocks of `prefix_tokens` tokens; equal ids in equal places
    stand for the same tokens. key: who asked. pace: tokens/s asked for explicitly; None: the mode's.

    Of a recording: ended, seconds as `at`, None if unknown. drafts_per_step, acceptance: how many guesses were verified in each
    step that it rode in after the first, and the share of them that were right. then: the request that comes `think` seconds
    after this one's end (see coming.py)."""

    at: float
    prompt_tokens: int
    output_tokens: int
    mode: ModeName | None = None
    max_tokens: int | None = None
    prefix: tuple[int, ...] = ()
    prefix_tokens: int = PREFIX_TOKENS
    key: str | None = None
    pace: float | None = None
    ended: float | None = None
    drafts_per_step: float | None = None
    acceptance: float = 0.0
    then: Arrival | None = field(default=None, compare=False, repr=False)
    think: float = 0.0


def read_trace(path: Path) -> list[Arrival]:
    """The trace's arrivals in order of time, which counts from the first of them. A request of unknown output length (one that
    was refused) gets the median of the others. Raises UsageError that names the file and the line at fault."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            arrivals = list(_parse(file, path))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text, so it is no trace") from None
    if not arrivals:
        raise UsageError(f"{path} holds no requests")
    known = [a.output_tokens for a in arrivals if a.output_tokens != UNKNOWN]
    typical = max(1, round(median(known))) if known else 1
    begin = min(a.at for a in arrivals)
    for a in arrivals:
        a.at -= begin
        a.ended = None if a.ended is None else a.ended - begin
        a.output_tokens = typical if a.output_tokens == UNKNOWN else max(1, a.output_tokens)
    arrivals.sort(key=lambda a: a.at)  # a recording is in order of who ended
    return arrivals


def machine_line(path: Path) -> dict[str, object] | None:
    """What the last recording in the file was made on; None if it doesn't tell. Raises UsageError."""
    found = None
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith(_MACHINE_LINE):
                found = number, line
    if found is None:
        return None
    try:
        machine = json.loads(found[1])[MACHINE]
    except ValueError as error:
        raise UsageError(f"{path}, line {found[0]}: {error}") from None
    return machine if isinstance(machine, dict) else None


def with_modes(arrivals: Iterable[Arrival], fast_share: float, seed: int) -> Iterator[Arrival]:
    """The arrivals, each with a mode: its own, else fast for this share of them, by a seeded draw (which is set in them)."""
    draw = random.Random(f"modes {seed}").random
    for arrival in arrivals:
        if arrival.mode is None:
            arrival.mode = ModeName.FAST if draw() < fast_share else ModeName.STANDARD
        yield arrival


def _parse(lines: Iterable[str], path: Path) -> Iterator[Arrival]:
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith(_MACHINE_LINE))
    first = next(numbered, None)
    if first is None:
        return
    parse = _format_of(first[1], path)
    if first[1].lstrip().startswith("{"):
        yield _checked(parse, *first, path)
    for number, line in numbered:
        yield _checked(parse, number, line, path)


def _format_of(first: str, path: Path) -> Callable[[str], Arrival]:
    if first.lstrip().startswith("{"):
        return _mooncake if '"timestamp"' in first and '"at"' not in first else _own
    columns = next(csv.reader([first]))
    if tuple(column.strip() for column in columns) == AZURE_COLUMNS:
        return _azure
    raise UsageError(
        f"{path}, line 1: neither JSON lines (headway's or Mooncake's) nor a CSV with the columns {','.join(AZURE_COLUMNS)}"
    )


def _checked(parse: Callable[[str], Arrival], number: int, line: str, path: Path) -> Arrival:
    try:
        return parse(line)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path}, line {number}: {f'{key}: ' if key else ''}{message[0].lower()}{message[1:]}") from None
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: {error}") from None


MAX_TOKENS = 10_000_000
"""More than any context; keeps a damaged line from asking for all memory."""
Prompt = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Output = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Id = Annotated[int, Field(ge=0)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _OwnLine(_Line):
    at: float
    prompt_tokens: Prompt
    output_tokens: Output | None
    mode: Literal["standard", "fast"] | None = None
    max_tokens: Prompt | None = None
    prefix: Annotated[tuple[Id, ...], Field(strict=False)] = ()
    prefix_tokens: Prompt = PREFIX_TOKENS
    key: str | None = None
    pace: Annotated[float, Field(gt=0)] | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    drafted_tokens: Annotated[int, Field(ge=0)] | None = None
    accepted_tokens: Annotated[int, Field(ge=0)] = 0


class _MooncakeLine(_Line):
    timestamp: float
    input_length: Prompt
    output_length: Output
    hash_ids: Annotated[tuple[Id, ...], Field(strict=False)] = ()


def _own(line: str) -> Arrival:
    a = _OwnLine.model_validate_json(line)
    output = UNKNOWN if a.output_tokens is None else a.output_tokens
    if a.max_tokens is not None and a.max_tokens < output:
        raise ValueError(f"output_tokens is {output}, more than max_tokens, {a.max_tokens}")
    arrival = Arrival(
        a.at,
        a.prompt_tokens,
        output,
        ModeName(a.mode) if a.mode else None,
        a.max_tokens,
        a.prefix,
        a.prefix_tokens,
        a.key,
        a.pace,
    )
    if a.seconds is not None:
        arrival.ended = a.at + a.seconds
    if a.drafted_tokens is not None:
        steps = output - 1 - a.accepted_tokens  # after the first one
        arrival.drafts_per_step = a.drafted_tokens / steps if steps > 0 else 0.0
        arrival.acceptance = min(1.0, a.accepted_tokens / a.drafted_tokens) if a.drafted_tokens else 0.0
    return arrival


def _mooncake(line: str) -> Arrival:
    a = _MooncakeLine.model_validate_json(line)
    return Arrival(a.timestamp / 1000, a.input_length, a.output_length, prefix=a.hash_ids, prefix_tokens=MOONCAKE_TOKENS)


def _azure(line: str) -> Arrival:
    fields = next(csv.reader([line]))
    if len(fields) != len(AZURE_COLUMNS):
        raise ValueError(f"{len(fields)} columns instead of {len(AZURE_COLUMNS)}")
    try:
        at = datetime.fromisoformat(fields[0].strip())
    except ValueError:
        raise ValueError(f"{fields[0]!r} is no time like 2023-11-16 18:15:46.680590") from None
    prompt, output = (_count(name, text) for name, text in zip(AZURE_COLUMNS[1:], fields[1:], strict=True))
    if prompt < 1:
        raise ValueError("ContextTokens is 0; a prompt has at least one token")
    return Arrival((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp(), prompt, output)


def _count(name: str, text: str) -> int:
    if not (text.strip().isdecimal() and int(text) <= MAX_TOKENS):
        raise ValueError(f"{name} is {text!r}; it should be a whole number of tokens")
    return int(text)
