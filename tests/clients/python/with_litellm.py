"""LiteLLM; see steps.py. It knows headway as any server that speaks OpenAI's or Anthropic's API."""

from __future__ import annotations

import asyncio
from typing import Any

import litellm
from steps import TOOL, each, model, run, thrown, url

LOOP = asyncio.new_event_loop()
MESSAGES: Any = [{"role": "user", "content": "Say hello."}]
KEY: dict[str, Any] = {"api_key": "made-up", "num_retries": 0, "max_retries": 0}
OPENAI: dict[str, Any] = {"model": f"openai/{model}", "api_base": f"{url}/v1", **KEY}
ANTHROPIC: dict[str, Any] = {"model": f"anthropic/{model}", "api_base": url, **KEY}
CHAT: dict[str, Any] = {"messages": MESSAGES, "max_tokens": 8, "temperature": 0}
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "default": {"service_tier": "default"},
    "priority": {"service_tier": "priority"},
    "fast": {"service_tier": "fast"},
    "alias": {"model": f"openai/{model}-fast"},
}
SPEEDS: dict[str, dict[str, Any]] = {
    "none": {},
    "standard": {"speed": "standard"},
    "fast": {"speed": "fast"},
    "alias": {"model": f"anthropic/{model}-fast"},
}
TOOLS: dict[str, Any] = {
    "tools": [{"type": "function", "function": TOOL}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "max_tokens": 60,
}
litellm.suppress_debug_info = True  # else it prints advice beside our JSON
# Of models that it doesn't know it passes no `speed` on, and makes up a response's stream once it has the whole.
litellm.register_model({model: {"litellm_provider": "anthropic", "mode": "chat", "supports_speed": True}})
for name in (model, f"{model}-fast"):
    litellm.register_model({f"openai/{name}": {"litellm_provider": "openai", "supports_native_streaming": True}})


def chat(**fields: Any) -> Any:
    return litellm.completion(**{**OPENAI, **CHAT, **fields})


def streamed(**fields: Any) -> Any:
    chunks = list(chat(**fields, stream=True, stream_options={"include_usage": True}))
    return {"chunks": chunks, "whole": litellm.stream_chunk_builder(chunks, messages=MESSAGES)}


def text(**fields: Any) -> Any:
    return litellm.text_completion(**{**OPENAI, "prompt": "Once upon", "max_tokens": 8, "temperature": 0, **fields})


def response(**fields: Any) -> Any:
    return litellm.responses(**{**OPENAI, "input": "Say hello.", "max_output_tokens": 8, "temperature": 0, **fields})


def message(**fields: Any) -> Any:
    return litellm.completion(**{**ANTHROPIC, **CHAT, **fields})


def message_streamed(**fields: Any) -> Any:
    chunks = list(message(**fields, stream=True, stream_options={"include_usage": True}))
    return {"chunks": chunks, "whole": litellm.stream_chunk_builder(chunks, messages=MESSAGES)}


def native(**fields: Any) -> Any:
    """Messages in Anthropic's own shape, as its gateway passes them on."""
    asked = {**ANTHROPIC, "messages": MESSAGES, "max_tokens": 8, "temperature": 0, **fields}
    return LOOP.run_until_complete(litellm.anthropic_messages(**asked))


run(
    {
        "chat": lambda: each(WAYS, chat),
        "stream": lambda: each(WAYS, streamed),
        "text": lambda: each({"none": {}, "fast": {"extra_body": {"service_tier": "fast"}}}, text),
        "responses": lambda: each(WAYS, response),
        "responsesStream": lambda: each(WAYS, lambda **fields: list(response(**fields, stream=True))),
        "messages": lambda: each(SPEEDS, message),
        "messagesStream": lambda: each(SPEEDS, message_streamed),
        "native": lambda: each(SPEEDS, native),
        "tools": lambda: {
            "openai": each(WAYS, lambda **fields: chat(**fields, **TOOLS)),
            "streamed": each(WAYS, lambda **fields: streamed(**fields, **TOOLS)["whole"]),
            "anthropic": each(SPEEDS, lambda **fields: message(**fields, **TOOLS)),
        },
        "errors": lambda: {
            "bad": thrown(lambda: chat(temperature=5)),
            "long": thrown(lambda: chat(messages=[{"role": "user", "content": "word " * 10_000}])),
            "model": thrown(lambda: chat(model="openai/other")),
            "anthropic_model": thrown(lambda: message(model="anthropic/other")),
            "anthropic_long": thrown(lambda: message(messages=[{"role": "user", "content": "word " * 10_000}])),
        },
        "full": lambda: {"openai": thrown(chat), "anthropic": thrown(message)},
        "noFastSeat": lambda: {
            "openai": chat(service_tier="priority"),
            "anthropic": thrown(lambda: message(speed="fast")),
        },
        "failing": lambda: thrown(lambda: streamed()),
    }
)
