"""One row of the ledger: what is known when a request starts, and what its choices came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headway.ledger.prices import Prices
from headway.modes import ModeName
from headway.runtime.api import Usage

Row = dict[str, Any]
OUTCOMES = ("error", "cancelled", "length", "stop")
"""Of several choices the first of these counts."""


@dataclass(frozen=True, slots=True)
class Entry:
    """id: the answer's x-request-id. time: of arrival, Unix seconds. key: its name, "" without one. endpoint: the path.
    choices_per_prompt: a prompt counts once, however many choices it has."""

    id: str
    time: float
    key: str
    dialect: str
    endpoint: str
    model: str
    requested: ModeName
    served: ModeName
    choices_per_prompt: int = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """One choice. ttft: seconds, None if it got no token. completion: seconds from its first token to its last."""

    outcome: str
    usage: Usage
    ttft: float | None
    completion: float


def refused_row(entry: Entry) -> Row:
    """It found no place, or was over a limit."""
    return _row(entry, "refused", [], 0)


def ended_row(entry: Entry, choices: Sequence[Ended], prices: Prices) -> Row:
    """Tokens as in the answer's usage. What the server itself has failed at costs nothing; what a client has left costs what
    was computed of it."""
    outcome = min((choice.outcome for choice in choices), key=OUTCOMES.index)
    usages = [choice.usage for choice in choices]
    prompts = usages[:: entry.choices_per_prompt]
    prompt, cached = sum(usage.prompt_tokens for usage in prompts), sum(usage.cached_tokens for usage in prompts)
    price = 0 if outcome == "error" else prices.of(entry.served, prompt, cached, sum(map(_output, usages)))
    return _row(entry, outcome, choices, price) | {"prompt_tokens": prompt, "cached_tokens": cached}


def _row(entry: Entry, outcome: str, choices: Sequence[Ended], price: int) -> Row:
    usages = [choice.usage for choice in choices]
    due = [max(usage.completion_tokens - 1, 0) for usage in usages]
    on_time = sum(usage.attainment * tokens for usage, tokens in zip(usages, due, strict=True))
    completion = sum(choice.completion for choice, tokens in zip(choices, due, strict=True) if tokens)
    return {
        "id": entry.id,
        "time": datetime.fromtimestamp(entry.time, UTC).replace(tzinfo=None),
        "key": entry.key,
        "dialect": entry.dialect,
        "endpoint": entry.endpoint,
        "model": entry.model,
        "requested_mode": str(entry.requested),
        "served_mode": str(entry.served),
        "outcome": outcome,
        "prompt_tokens": 0,
        "cached_tokens": 0,
        "output_tokens": sum(map(_output, usages)),
        "drafted_tokens": sum(usage.drafted_tokens for usage in usages),
        "accepted_tokens": sum(usage.accepted_tokens for usage in usages),
        "ttft": min((choice.ttft for choice in choices if choice.ttft is not None), default=None),
        "tpot": completion / sum(due) if sum(due) else None,
        "attainment": on_time / sum(due) if sum(due) else None,
        "engine_seconds": sum(usage.engine_seconds for usage in usages),
        "price_nano": price,
    }


def _output(usage: Usage) -> int:
    """Rejected tokens of a prediction count, as in the answer's usage."""
    return usage.completion_tokens + usage.predicted_rejected
