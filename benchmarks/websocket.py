"""What an agent's loop of tool calls waits for besides the engine, over HTTP and over a WebSocket.

    python benchmarks/websocket.py [--model smollm2] [--calls 20] [--rounds 5] [--tool-ms 5]

The same conversation goes four ways, in turn: over HTTP with all of it in every request, on a connection of its own each time
and on one that is kept; over HTTP with `previous_response_id`; and over a WebSocket, which sends only what is new. Each
response streams one call of a tool (it must be one, greedily chosen), whose result comes after so many milliseconds.

How to read it: `outside` is the loop's wall time less the tools' and less what the answers give as `time_info.total_time`
(queue, prompt and output in the engine), the client's own work and the network stack included, since they run on the same
cores. `saved` compares it with HTTP as most agents use it: a connection that is kept, and the whole conversation each time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from output import publish, right_aligned

from headway.compare.client import Client
from headway.compare.commands import run_async
from headway.compare.embedded import running, serve_command
from headway.compare.endpoint import find_model
from headway.compare.progress import Silent
from headway.errors import HeadwayError

Json = dict[str, Any]
Send = Callable[[Json], Awaitable[Json]]

INSTRUCTIONS = "You are an agent that repairs programs. Read before you change, and test after it. " * 12
NAMES = ("read_file", "write_file", "list_folder", "search_text", "run_tests", "apply_patch")
PART = {"part": {"type": "integer", "minimum": 0, "maximum": 99, "description": "The number of the part of the parser."}}
TOOLS = [
    {
        "type": "function",
        "name": name,
        "description": f"Use this to {name.replace('_', ' ')} in the repository; paths are relative to its root.",
        "parameters": {"type": "object", "properties": PART, "required": ["part"]},
    }
    for name in NAMES
]
TASK = {"role": "user", "content": "The tests of the parser fail since yesterday. Find out why and mend it."}
WAYS = ("http, new connections", "http", "http, previous_response_id", "websocket")
USUAL = "http"


@dataclass(frozen=True, slots=True)
class Loop:
    """One conversation. Seconds of the whole loop, and those of the engine and of the tools in it; texts: what was answered."""

    wall: float
    engine: float
    tools: float
    sent: int
    texts: tuple[str, ...]

    @property
    def outside(self) -> float:
        return self.wall - self.engine - self.tools


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tool-ms", type=float, default=5.0, help="what each of the tools takes")
    arguments = parser.parse_args()
    with running(serve_command(arguments.model, 32)) as server:
        url = server.wait_ready(Silent())
        loops = run_async(measure(url, arguments.calls, arguments.rounds, arguments.tool_ms / 1e3))
    report(arguments, loops)


def report(arguments: argparse.Namespace, loops: dict[str, list[Loop]]) -> None:
    outside = {way: median(loop.outside for loop in each) for way, each in loops.items()}
    title = f"A loop of {arguments.calls} calls, tools of {arguments.tool_ms:g} ms"
    table = right_aligned(title, "way", "wall s", "engine s", "outside ms", "a call ms", "sent KB", "saved")
    figures = {}
    for way, each in loops.items():
        saved = 1 - outside[way] / outside[USUAL]
        wall, engine = median(loop.wall for loop in each), median(loop.engine for loop in each)
        milliseconds = 1e3 * outside[way]
        table.add_row(
            way,
            f"{wall:.2f}",
            f"{engine:.2f}",
            f"{milliseconds:.0f}",
            f"{milliseconds / arguments.calls:.2f}",
            f"{each[0].sent / 1e3:.0f}",
            f"{saved:.0%}",
        )
        figures[way] = {
            "wall_s": round(wall, 4),
            "engine_s": round(engine, 4),
            "outside_ms": round(milliseconds, 2),
            "outside_ms_of_rounds": [round(1e3 * loop.outside, 2) for loop in each],
            "sent_bytes": each[0].sent,
            "saved": round(saved, 4),
        }
    same = len({loop.texts for each in loops.values() for loop in each}) == 1
    note = f"The same answers every way: {'yes' if same else 'no'}. Medians of {arguments.rounds} rounds."
    parameters = {"model": Path(arguments.model).name, "calls": arguments.calls, "tool_ms": arguments.tool_ms}
    publish("websocket", table, {**parameters, "ways": figures, "same_answers": same}, [note], ("websockets", "aiohttp"))


async def measure(url: str, calls: int, rounds: int, tool_seconds: float) -> dict[str, list[Loop]]:
    async with Client(url) as client:
        model = await find_model(client, None)
    common = {
        "model": model,
        "instructions": INSTRUCTIONS,
        "tools": TOOLS,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_output_tokens": 64,
        "temperature": 0,
    }
    loops: dict[str, list[Loop]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way in WAYS:
            loop = await converse(url, way, common, calls, tool_seconds)
            if number:  # the first round fills the prefix cache, for all alike
                loops[way].append(loop)
    return loops


async def converse(url: str, way: str, common: Json, calls: int, tool_seconds: float) -> Loop:
    connector = aiohttp.TCPConnector(force_close=way == WAYS[0])
    async with aiohttp.ClientSession(url, connector=connector) as session:
        if way != "websocket":
            return await tool_loop(lambda body: over_http(session, body), common, calls, tool_seconds, keeps=way == WAYS[2])
        async with session.ws_connect("/v1/responses", max_msg_size=0) as socket:
            fields = {**common, "store": False}
            return await tool_loop(lambda body: over_websocket(socket, body), fields, calls, tool_seconds, keeps=True)


async def tool_loop(send: Send, common: Json, calls: int, tool_seconds: float, *, keeps: bool) -> Loop:
    """keeps: the server knows the conversation up to the last answer."""
    fields = common if keeps else {**common, "store": False}
    items: list[Json] = [TASK]
    previous: str | None = None
    engine, tools, sent, texts = 0.0, 0.0, 0, []
    began = time.perf_counter()
    for number in range(calls):
        body = {**fields, "input": items, **({"previous_response_id": previous} if previous else {})}
        sent += len(json.dumps(body))
        response = await send(body)
        engine += response["time_info"]["total_time"]
        (call,) = response["output"]
        texts.append(f"{call['name']} {call['arguments']}")
        result = result_of(call, number)
        if tool_seconds:
            asked = time.perf_counter()
            await asyncio.sleep(tool_seconds)
            tools += time.perf_counter() - asked
        if keeps:
            items, previous = [result], response["id"]
        else:
            items = [*items, call, result]
    return Loop(time.perf_counter() - began, engine, tools, sent, tuple(texts))


def result_of(call: Json, number: int) -> Json:
    if call["type"] != "function_call" or call["status"] != "completed":
        raise HeadwayError(f"the answer should be a complete call of a tool, not {call}")
    lines = [f"{number * 10 + line}: value = read(stream, {line}) or default({number})" for line in range(5)]
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "\n".join(lines)}


async def over_http(session: aiohttp.ClientSession, body: Json) -> Json:
    async with session.post("/v1/responses", json={**body, "stream": True}) as reply:
        if reply.status != 200:
            raise HeadwayError(f"the server refused: {await reply.text()}")
        async for event in events_of(reply.content):
            if event["type"] in ("response.completed", "response.incomplete"):
                response: Json = event["response"]
                return response
    raise HeadwayError("the stream ended without a response")


async def events_of(lines: aiohttp.StreamReader) -> AsyncIterator[Json]:
    async for line in lines:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


async def over_websocket(socket: aiohttp.ClientWebSocketResponse, body: Json) -> Json:
    await socket.send_json({"type": "response.create", **body})
    while True:
        event = await socket.receive_json()
        if event["type"] in ("response.completed", "response.incomplete"):
            response: Json = event["response"]
            return response
        if event["type"] == "error":
            raise HeadwayError(f"the server refused: {event['error']['message']}")


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
