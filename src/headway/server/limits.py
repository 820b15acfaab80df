"""How much more would be taken now, as clients' limit headers want to know it: by the machine's limits, or by the
key's where they leave less.

The machine's: a request is a place (a seat or one in the queue), and the output tokens of a minute are those that the seats'
paces come to. What prompts may come to isn't bounded by it, so nothing is said of them where the key has no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.access.allowance import Kind, OverLimit, Window
from headway.errors import RequestError
from headway.modes import Mode, ModeName
from headway.runtime.served import ServedModel

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one mode. Tokens are a minute's; input_tokens: None if they are not limited."""

    requests: Window
    output_tokens: Window
    input_tokens: Window | None = None

    @property
    def tokens(self) -> Window:
        """Of input and output, the one of which the smaller share is left."""
        windows = [self.output_tokens, *([self.input_tokens] if self.input_tokens is not None else [])]
        return min(windows, key=lambda window: window.remaining / window.limit if window.limit else 0.0)


def limits_now(served: ServedModel, name: ModeName, own: Mapping[Kind, Window], refused: RequestError | None = None) -> Limits:
    """own: the caller's limits. refused: the refusal that this goes with; if it is the machine's, it has nothing left until
    `retry_after`."""
    machine = _machine(served, name, None if isinstance(refused, OverLimit) else refused)
    return Limits(
        _less(machine.requests, own.get(Kind.REQUESTS)),
        _less(machine.output_tokens, own.get(Kind.OUTPUT)),
        own.get(Kind.INPUT),
    )


def _less(machine: Window, own: Window | None) -> Window:
    return machine if own is None or machine.remaining < own.remaining else own


def _machine(served: ServedModel, name: ModeName, refused: RequestError | None) -> Limits:
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
