"""How Anthropic's API refuses, and its limit headers: `anthropic-ratelimit-*`, and a pool of its own for fast."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from headway.access.allowance import Kind, OverLimit, Window
from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.served import ServedModel
from headway.server.anthropic.errors import OVERLOADED
from headway.server.limits import limits_now
from headway.server.modes import Speed


class AnthropicCulture:
    def __init__(self, served: ServedModel) -> None:
        self._served = served

    def refusal(self, error: RequestError, asked: Speed) -> RequestError:
        """No place left at standard means that the whole machine is taken; without one at fast a client can still drop
        `speed`, without one of a spark ask the main model, and a key's limit is the key's."""
        if error.status != 429 or isinstance(error, OverLimit) or asked.mode is not ModeName.STANDARD or asked.explicit:
            return error
        return RequestError(OVERLOADED, error.message, retry_after=error.retry_after)

    def headers(self, speed: Speed, own: Mapping[Kind, Window], refused: RequestError | None = None) -> dict[str, str]:
        """Fast's pool has names of its own, so that nobody takes it for all that the key may have."""
        limits = limits_now(self._served, speed.mode, own, refused)
        pool = "anthropic-fast" if speed.mode is ModeName.FAST else "anthropic-ratelimit"
        headers = _window(f"{pool}-output-tokens", limits.output_tokens)
        if speed.mode is not ModeName.FAST or Kind.REQUESTS in own:
            headers |= _window(f"{pool}-requests", limits.requests)
        if limits.input_tokens is not None:
            headers |= _window(f"{pool}-input-tokens", limits.input_tokens) | _window(f"{pool}-tokens", limits.tokens)
        return headers


def _window(prefix: str, window: Window) -> dict[str, str]:
    reset = datetime.now(UTC) + timedelta(seconds=window.reset, microseconds=999_999)  # in whole seconds, and never too early
    return {
        f"{prefix}-limit": str(window.limit),
        f"{prefix}-remaining": str(window.remaining),
        f"{prefix}-reset": reset.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
