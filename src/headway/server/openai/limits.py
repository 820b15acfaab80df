"""How OpenAI's API refuses, and its limit headers: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headway.access.allowance import Kind, Window
from headway.errors import RequestError
from headway.runtime.served import ServedModel
from headway.server.limits import limits_now
from headway.server.modes import Speed


class OpenAICulture:
    def __init__(self, served: ServedModel) -> None:
        self._served = served

    def refusal(self, error: RequestError, asked: Speed) -> RequestError:
        return error

    def headers(self, speed: Speed, own: Mapping[Kind, Window], refused: RequestError | None = None) -> dict[str, str]:
        limits = limits_now(self._served, speed.mode, own, refused)
        return _window("requests", limits.requests) | _window("tokens", limits.tokens)


def _window(what: str, window: Window) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{what}": str(window.limit),
        f"x-ratelimit-remaining-{what}": str(window.remaining),
        f"x-ratelimit-reset-{what}": duration(window.reset),
    }


def duration(seconds: float) -> str:
    """As OpenAI writes it: `20ms`, `1.5s`, `6m0s`, `1h0m0s`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 60:
        return f"{seconds:.4g}s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s"
