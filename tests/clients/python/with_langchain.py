"""LangChain's ChatOpenAI and ChatAnthropic; see steps.py."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel
from steps import each, model, run, thrown, url

HELLO = "Say hello."
LOOP = asyncio.new_event_loop()
"""One for all: LangChain keeps its connections, and they belong to a loop."""
OPENAI: dict[str, Any] = {"model": model, "base_url": f"{url}/v1", "api_key": "made-up", "max_retries": 0, "temperature": 0}
ANTHROPIC: dict[str, Any] = {"model": model, "base_url": url, "api_key": "made-up", "max_retries": 0, "temperature": 0}
TIERS: dict[str, dict[str, Any]] = {
    "none": {},
    "default": {"service_tier": "default"},
    "priority": {"service_tier": "priority"},
    "fast": {"service_tier": "fast"},
    "alias": {"model": f"{model}-fast"},
}
SPEEDS: dict[str, dict[str, Any]] = {
    "none": {},
    "standard": {"model_kwargs": {"speed": "standard"}},
    "fast": {"model_kwargs": {"speed": "fast"}},
    "alias": {"model": f"{model}-fast"},
}


class Person(BaseModel):
    name: Literal["Ada", "Alan"]
    grown: bool


@tool
def weather(city: Literal["Oslo", "Rome"]) -> str:
    """The weather of a city."""
    return f"It rains in {city}."


def openai(**fields: Any) -> ChatOpenAI:
    """stream_usage: for a server that isn't OpenAI's own it has to be asked for."""
    return ChatOpenAI(**{**OPENAI, "max_tokens": 8, "stream_usage": True, **fields})


def responses(**fields: Any) -> ChatOpenAI:
    return openai(use_responses_api=True, **fields)


def anthropic(**fields: Any) -> ChatAnthropic:
    return ChatAnthropic(**{**ANTHROPIC, "max_tokens": 8, **fields})


def streamed(chat: Any) -> Any:
    pieces = list(chat.stream(HELLO))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    assert isinstance(whole, AIMessageChunk)
    return {"texts": [piece.text for piece in pieces], "whole": whole}


def called(chat: Any) -> Any:
    """Calls its tool once, streamed too; the result goes back, and what it says then."""
    calling = chat.bind_tools([weather], tool_choice="any", parallel_tool_calls=False)
    first = calling.invoke(HELLO)
    results = [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in first.tool_calls]
    return {"first": first, "streamed": streamed(calling)["whole"], "second": chat.invoke([HELLO, first, *results])}


def one(chat: Any) -> Any:
    return {"invoked": chat.invoke(HELLO), "awaited": LOOP.run_until_complete(chat.ainvoke(HELLO)), "streamed": streamed(chat)}


def refusals(make: Any) -> Any:
    return {
        "bad": thrown(lambda: make(max_tokens=0).invoke(HELLO)),
        "long": thrown(lambda: make().invoke("word " * 10_000)),
        "model": thrown(lambda: make(model="other").invoke(HELLO)),
    }


run(
    {
        "openai": lambda: each(TIERS, lambda **fields: one(openai(**fields))),
        "responses": lambda: each(TIERS, lambda **fields: one(responses(**fields))),
        "anthropic": lambda: each(SPEEDS, lambda **fields: one(anthropic(**fields))),
        "completions": lambda: OpenAI(**OPENAI, max_tokens=8).invoke("Once upon"),
        "tools": lambda: {
            "openai": each(TIERS, lambda **fields: called(openai(max_tokens=60, **fields))),
            "responses": each(TIERS, lambda **fields: called(responses(max_tokens=60, **fields))),
            "anthropic": each(SPEEDS, lambda **fields: called(anthropic(max_tokens=60, **fields))),
        },
        "structured": lambda: [
            chat.with_structured_output(Person, method="json_schema").invoke("Who are you?")
            for chat in (openai(max_tokens=60), responses(max_tokens=60), anthropic(max_tokens=60))
        ],
        "errors": lambda: {"openai": refusals(openai), "anthropic": refusals(anthropic)},
        "full": lambda: {
            "openai": thrown(lambda: openai().invoke(HELLO)),
            "anthropic": thrown(lambda: anthropic().invoke(HELLO)),
        },
        "noFastSeat": lambda: {
            "openai": openai(service_tier="priority").invoke(HELLO),
            "anthropic": thrown(lambda: anthropic(model_kwargs={"speed": "fast"}).invoke(HELLO)),
        },
        "failing": lambda: thrown(lambda: streamed(openai())),
    }
)
