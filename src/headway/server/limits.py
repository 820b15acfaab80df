"""How much more would be taken now, as clients' limit headers want to know it.

There are no limits per key yet, only the machine's: a request is a place (a seat or one in the queue), and the output tokens of
a minute are those that the seats' paces come to. What prompts may come to isn't bounded, so nothing is said of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import RequestError
from headway.modes import Mode, ModeName
from headway.runtime.served import ServedModel

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Window:
    """reset: seconds until there is more; 0 where some is left."""

    limit: int
    remaining: int
    reset: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one mode. output_tokens: per minute."""

    requests: Window
    output_tokens: Window


def limits_now(served: ServedModel, name: ModeName, refused: RequestError | None) -> Limits:
    """refused: the refusal that this goes with; then nothing is left until its `retry_after`."""
    mode, load = served.modes[name], served.generator.load()
    running, waiting = load.get(f"running_{name}", 0), load.get(f"waiting_{name}", 0)
    full = refused is not None
    reset = refused.retry_after or 1.0 if refused is not None else 0.0
    places = mode.max_rows + mode.max_waiting
    return Limits(
        Window(places, 0 if full else max(0, places - int(running + waiting)), reset),
        Window(_tokens(mode, mode.max_rows), 0 if full else _tokens(mode, max(0, mode.max_rows - int(running))), reset),
    )


def _tokens(mode: Mode, rows: int) -> int:
    return int(rows * mode.pace * MINUTE)
