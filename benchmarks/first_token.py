"""What the request path adds to the time to the first token, in each dialect over HTTP.

    python benchmarks/first_token.py [--model smollm2] [--requests 60]

Requests come one at a time, in turn to each dialect, on a connection that is kept; each streams a few tokens of a chat of some
200. `added` is the time from before the client sends until it has read the first event with text, less what the answer itself
gives as the engine's time to its first token (queue and prompt): both network stacks, the client's own work, and everything
that the server does on the way in and out, tokenizing included. `tokenizing` is what the tokenizer takes for the same prompt,
measured in this process as often, after other memory has driven it out of the caches as the model's weights do in the server.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import numpy as np
from output import publish, right_aligned

from headway.catalog.resolve import resolve
from headway.compare.client import Client
from headway.compare.commands import run_async
from headway.compare.embedded import running, serve_command
from headway.compare.endpoint import find_model
from headway.compare.progress import Silent
from headway.compare.stats import percentile
from headway.errors import HeadwayError
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Tokenizer

Json = dict[str, Any]
TEXT = "A bus goes every ten minutes in the morning and every twenty after it; who comes by chance waits for half of that. " * 6
GOAL_MS = 3.0
CACHE_BYTES = 64 << 20


def chat(model: str, text: str) -> tuple[str, Json]:
    messages = [{"role": "user", "content": text}]
    return "/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 4, "temperature": 0}


def responses(model: str, text: str) -> tuple[str, Json]:
    return "/v1/responses", {"model": model, "input": text, "max_output_tokens": 4, "temperature": 0, "store": False}


def messages(model: str, text: str) -> tuple[str, Json]:
    return "/v1/messages", chat(model, text)[1]


def chat_text(event: Json) -> bool:
    return any(choice["delta"].get("content") for choice in event["choices"])


def responses_text(event: Json) -> bool:
    return bool(event["type"] == "response.output_text.delta")


def messages_text(event: Json) -> bool:
    return bool(event["type"] == "content_block_delta")


DIALECTS: dict[str, tuple[Callable[[str, str], tuple[str, Json]], Callable[[Json], bool]]] = {
    "chat completions": (chat, chat_text),
    "responses": (responses, responses_text),
    "messages": (messages, messages_text),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--requests", type=int, default=60, help="of each dialect")
    arguments = parser.parse_args()
    with running(serve_command(arguments.model, 32)) as server:
        url = server.wait_ready(Silent())
        added = run_async(measure(url, arguments.requests))
    tokenizing = tokenizing_ms(arguments.model, arguments.requests)
    table = right_aligned(
        f"{arguments.requests} requests each", "dialect", "added p50 ms", "p95 ms", "beyond tokenizing p50 ms"
    )
    figures = {}
    for dialect, times in added.items():
        beyond = median(times) - tokenizing
        slow = percentile(times, 95) or 0.0
        table.add_row(dialect, f"{median(times):.2f}", f"{slow:.2f}", f"{beyond:.2f}")
        figures[dialect] = {"added_ms": round(median(times), 3), "p95_ms": round(slow, 3)}
        figures[dialect]["beyond_tokenizing_ms"] = round(beyond, 3)
    notes = [f"Tokenizing the prompt takes {tokenizing:.2f} ms. The goal is under {GOAL_MS:g} ms beyond it."]
    parameters = {"model": Path(arguments.model).name, "requests": arguments.requests, "tokenizing_ms": round(tokenizing, 3)}
    publish("first_token", table, {**parameters, "dialects": figures}, notes, ("uvicorn", "aiohttp"))


async def measure(url: str, requests: int) -> dict[str, list[float]]:
    """Milliseconds that each request had its first text later than the engine had its first token."""
    async with Client(url) as client:
        model = await find_model(client, None)
    added: dict[str, list[float]] = {dialect: [] for dialect in DIALECTS}
    async with aiohttp.ClientSession(url) as session:
        for number in range(requests + 3):
            for dialect, (make, has_text) in DIALECTS.items():
                path, body = make(model, f"{number}. {TEXT}")
                took = await first_token(session, path, {**body, "stream": True}, has_text)
                if number >= 3:  # the first ones fill caches
                    added[dialect].append(1e3 * took)
    return added


async def first_token(session: aiohttp.ClientSession, path: str, body: Json, has_text: Callable[[Json], bool]) -> float:
    """Seconds beyond the engine's own, which the answer's last events say."""
    began, first, engine = time.perf_counter(), None, None
    async with session.post(path, json=body) as reply:
        if reply.status != 200:
            raise HeadwayError(f"the server refused: {await reply.text()}")
        async for line in reply.content:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if first is None and has_text(event):
                first = time.perf_counter() - began
            found = event.get("time_info") or (event.get("response") or {}).get("time_info")
            if found is not None:
                engine = found["queue_time"] + found["prompt_time"]
    if first is None or engine is None:
        raise HeadwayError(f"{path} sent no text, or no time_info")
    return float(first - engine)


def tokenizing_ms(model: str, times: int) -> float:
    path = resolve(model).path
    tokenizer = Tokenizer.load(path)
    if tokenizer.chat_template is None:
        raise HeadwayError(f"{model} has no chat template")
    template = ChatTemplate(tokenizer.chat_template, bos=tokenizer.bos, eos=tokenizer.eos)
    other, took = np.ones(CACHE_BYTES, np.uint8), []
    for number in range(times):
        text = template.render([{"role": "user", "content": f"{number}. {TEXT}"}])
        other.sum()
        began = time.perf_counter()
        tokenizer.encode(text)
        took.append(1e3 * (time.perf_counter() - began))
    return median(took)


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
