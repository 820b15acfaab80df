"""What the SDK does with a server that has no seat: it waits as told, and not more often than it should."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from cases.client import CHAT, Client, wait_for
from server.live import live

HELLO: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
def full() -> Iterator[Client]:
    """A server whose seats are all taken; the scripted generator refuses after the first request."""
    with live({"tokens": [120], "times": 10_000, "pause": 0.01}, seats=1) as (_, client):
        yield client


def test_a_refusal_is_a_rate_limit_error_and_retried_as_often_as_told(full: Client) -> None:
    with full.open_stream(CHAT, full.chat(max_tokens=10_000)) as events:
        next(events)
        sdk = openai.OpenAI(base_url=f"{full.url}/v1", api_key="none")
        for retries in (0, 2):
            before = full.metric("headway_requests_total", mode="standard", outcome="refused")
            began = time.monotonic()
            with pytest.raises(openai.RateLimitError) as refused:
                sdk.with_options(max_retries=retries).chat.completions.create(model="m", messages=HELLO)
            assert refused.value.code == "rate_limit_exceeded"
            assert int(refused.value.response.headers["retry-after"]) >= 1
            assert time.monotonic() - began >= retries * 0.2
            after = full.metric("headway_requests_total", mode="standard", outcome="refused")
            assert after - before == retries + 1
    wait_for(lambda: full.metric("headway_rows", mode="standard") == 0)
    assert (
        openai.OpenAI(base_url=f"{full.url}/v1", api_key="none")
        .chat.completions.create(model="m", messages=HELLO, max_tokens=2)
        .choices
    )


def test_a_stream_that_fails_raises_in_the_sdk() -> None:
    with live({"tokens": [65, 66, 67], "end": "error", "error": "the engine failed"}) as (_, client):
        sdk = openai.OpenAI(base_url=f"{client.url}/v1", api_key="none")
        with pytest.raises(openai.APIError, match="the engine failed"):
            list(sdk.chat.completions.create(model="m", messages=HELLO, stream=True))
