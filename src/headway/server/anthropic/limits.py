"""How Anthropic's API refuses, and its limit headers: `anthropic-ratelimit-*`, and a pool of its own for fast."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.served import ServedModel
from headway.server.anthropic.errors import OVERLOADED
from headway.server.limits import Window, limits_now
from headway.server.modes import Speed


class AnthropicCulture:
    def __init__(self, served: ServedModel) -> None:
        self._served = served

    def refusal(self, error: RequestError, asked: Speed) -> RequestError:
        """No place left at standard means that the whole machine is taken; without one at fast a client can still drop
        `speed`."""
        if error.status != 429 or asked.mode is ModeName.FAST or asked.explicit:
            return error
        return RequestError(OVERLOADED, error.message, retry_after=error.retry_after)

    def headers(self, speed: Speed, refused: RequestError | None = None) -> dict[str, str]:
        limits = limits_now(self._served, speed.mode, refused)
        if speed.mode is ModeName.FAST:
            return _window("anthropic-fast-output-tokens", limits.output_tokens)
        requests = _window("anthropic-ratelimit-requests", limits.requests)
        return requests | _window("anthropic-ratelimit-output-tokens", limits.output_tokens)


def _window(prefix: str, window: Window) -> dict[str, str]:
    reset = datetime.now(UTC) + timedelta(seconds=window.reset)
    return {
        f"{prefix}-limit": str(window.limit),
        f"{prefix}-remaining": str(window.remaining),
        f"{prefix}-reset": reset.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
