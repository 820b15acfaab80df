"""Clients that misbehave in every way that real ones do, drawn from a seed: they leave before the first byte, in the middle of
an event, in the queue or while their prompt is computed; they send what is no request; they close half of a connection; they
read slowly or not at all. Some behave well, and check that what they get ends as it should."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from cases.client import CHAT, COMPLETIONS
from cases.messages import MESSAGES
from cases.responses import RESPONSES
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

Json = dict[str, Any]
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
TOOL: Json = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SCHEMA: Json = {
    "type": "object",
    "properties": {"x": {"enum": ["red", "blue"]}},
    "required": ["x"],
    "additionalProperties": False,
}
MOST_SECONDS = 60.0
"""For one visit; nothing takes nearly as long unless it hangs."""
ENDS = {
    CHAT: (b"data: [DONE]\n\n",),
    COMPLETIONS: (b"data: [DONE]\n\n",),
    MESSAGES: (b"event: message_stop\n",),
    RESPONSES: (b"event: response.completed\n", b"event: response.incomplete\n"),
}


class Visitors:
    """host, port: of a server of the model "m". seed: the same one makes the same visits (when they leave is a matter of load).
    outcomes: how many of each kind there were, by the status that they saw (0: they left before there was one)."""

    def __init__(self, host: str, port: int, seed: int) -> None:
        self._host, self._port = host, port
        self._dice = random.Random(seed)
        self.outcomes: dict[tuple[str, int], int] = {}

    async def come(self, visits: int, at_once: int = 24) -> None:
        """Raises AssertionError for an answer that isn't as it should be, and TimeoutError for one that never ends."""
        door = asyncio.Semaphore(at_once)

        async def visit(dice: random.Random) -> None:
            async with door, asyncio.timeout(MOST_SECONDS):
                kind = dice.choice(KINDS)
                with contextlib.suppress(ConnectionError, WebSocketException):
                    status = await kind(self, dice)
                    seen = kind.__name__, status
                    self.outcomes[seen] = self.outcomes.get(seen, 0) + 1

        async with asyncio.TaskGroup() as group:
            for _ in range(visits):
                group.create_task(visit(random.Random(self._dice.random())))

    # --- what they send -----------------------------------------------------------------------------------------------------

    def _request(self, dice: random.Random, *, stream: bool | None = None) -> tuple[str, Json]:
        path = dice.choice([CHAT, COMPLETIONS, MESSAGES, RESPONSES])
        text = "x" * dice.choice([1, 30, 200, 700])
        length = dice.choice([1, 5, 40, 150])
        body: Json = {"model": dice.choice(["m", "m", "m-fast"]), "stream": dice.random() < 0.8 if stream is None else stream}
        turns = [{"role": "user", "content": text}]
        if path == CHAT:
            body |= {"messages": turns, "max_tokens": length, "n": dice.choice([1, 1, 3])}
            body |= dice.choice([{}, {}, {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}])
            body |= dice.choice([{}, {"logprobs": True, "top_logprobs": 5}])
        elif path == COMPLETIONS:
            body |= {"prompt": [text, "y"] if dice.random() < 0.3 else text, "max_tokens": length}
        elif path == MESSAGES:
            body |= {"messages": turns, "max_tokens": length}
            if dice.random() < 0.3:
                body |= {"tools": [{"name": "f", "input_schema": TOOL}], "tool_choice": {"type": "any"}}
        else:
            body |= {"input": text, "max_output_tokens": length, "store": dice.random() < 0.5}
            if dice.random() < 0.3:
                body |= {"tools": [{"type": "function", "name": "f", "parameters": TOOL}], "tool_choice": "required"}
        return path, body

    async def _open(self, *, receive_buffer: int | None = None) -> tuple[Reader, Writer]:
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (self._host, self._port))
        return await asyncio.open_connection(sock=connection)

    async def _with(self, work: Callable[[Reader, Writer], Awaitable[int]], dice: random.Random, **how: Any) -> int:
        reader, writer = await self._open(**how)
        try:
            return await work(reader, writer)
        finally:
            _leave(writer, dice)

    # --- those who behave ---------------------------------------------------------------------------------------------------

    async def stays(self, dice: random.Random) -> int:
        """To the end, and often for another request on the same connection."""

        async def work(reader: Reader, writer: Writer) -> int:
            status = 0
            for _ in range(dice.choice([1, 1, 3])):
                path, body = self._request(dice)
                writer.write(_http(path, body))
                status, answer = await _answer(reader)
                assert status in (200, 400, 429, 529), (status, answer)
                if status == 200 and body["stream"]:
                    assert answer.rstrip(b"\n").split(b"\n\n")[-1].startswith(tuple(end.rstrip(b"\n") for end in ENDS[path])), (
                        answer[-300:]
                    )
                else:
                    json.loads(answer)
            return status

        return await self._with(work, dice)

    async def reads_slowly(self, dice: random.Random) -> int:
        """And leaves at some time, or stays to the end."""

        async def work(reader: Reader, writer: Writer) -> int:
            path, body = self._request(dice, stream=True)
            writer.write(_http(path, body, last=True))
            for _ in range(dice.randint(0, 60)):
                if not await reader.read(dice.randint(1, 400)):
                    break
                await asyncio.sleep(0.004)
            return 0

        return await self._with(work, dice, receive_buffer=2048)

    # --- those who leave ----------------------------------------------------------------------------------------------------

    async def leaves_soon(self, dice: random.Random) -> int:
        """Before the first byte: in the queue, or while the prompt is computed."""

        async def work(reader: Reader, writer: Writer) -> int:
            writer.write(_http(*self._request(dice)))
            await asyncio.sleep(dice.choice([0, 0.001, 0.01, 0.05]) * dice.random())
            return 0

        return await self._with(work, dice)

    async def leaves_in_the_middle(self, dice: random.Random) -> int:
        """Of the headers, of an event, or at its end."""

        async def work(reader: Reader, writer: Writer) -> int:
            writer.write(_http(*self._request(dice, stream=True), last=True))
            with contextlib.suppress(asyncio.IncompleteReadError):
                await reader.readexactly(dice.choice([1, 20, 300, 600, 1500, 6000]) + dice.randint(0, 200))
            return 0

        return await self._with(work, dice)

    async def closes_its_half(self, dice: random.Random) -> int:
        async def work(reader: Reader, writer: Writer) -> int:
            request = _http(*self._request(dice))
            writer.write(request[: dice.choice([len(request), len(request), dice.randint(0, len(request))])])
            await asyncio.sleep(0.02 * dice.random())
            writer.write_eof()
            await reader.read()
            return 0

        return await self._with(work, dice)

    async def sends_two_and_leaves(self, dice: random.Random) -> int:
        async def work(reader: Reader, writer: Writer) -> int:
            writer.write(_http(*self._request(dice)) + _http(*self._request(dice)))
            await reader.read(dice.choice([1, 1000, 8000]))
            return 0

        return await self._with(work, dice)

    # --- those who send what is no request ----------------------------------------------------------------------------------

    async def sends_nonsense(self, dice: random.Random) -> int:
        """As a body; it is told so, and may ask again."""

        async def work(reader: Reader, writer: Writer) -> int:
            path, body = self._request(dice)
            raw = bytearray(json.dumps(body).encode())
            for _ in range(dice.choice([1, 3, 20])):
                raw[dice.randrange(len(raw))] = dice.randrange(256)
            writer.write(_framed(path, bytes(raw[: dice.choice([len(raw), dice.randint(0, len(raw))])])))
            status, answer = await _answer(reader)
            assert status in (200, 400, 404, 429, 529), (status, answer)
            return status

        return await self._with(work, dice)

    async def breaks_off(self, dice: random.Random) -> int:
        """In the middle of its body, or of its headers."""

        async def work(reader: Reader, writer: Writer) -> int:
            request = _http(*self._request(dice))
            writer.write(request[: dice.randint(0, len(request) - 1)])
            await asyncio.sleep(0.01 * dice.random())
            return 0

        return await self._with(work, dice)

    # --- WebSockets ---------------------------------------------------------------------------------------------------------

    async def talks(self, dice: random.Random) -> int:
        """Over a WebSocket: several messages, in lines of their own or not, some of them nonsense; leaves at any time."""
        async with connect(f"ws://{self._host}:{self._port}{RESPONSES}", max_size=None) as wire:
            asked = 0
            for _ in range(dice.randint(1, 4)):
                if dice.random() < 0.2:
                    await wire.send(dice.choice(["{", "[]", b"\xff\xfe", '{"type": "x"}', '{"type": "response.create"}']))
                else:
                    await wire.send(json.dumps(self._message(dice)))
                asked += 1
            if dice.random() < 0.4:
                ends = 0
                while ends < asked:
                    event = json.loads(await wire.recv())
                    ends += event["type"] in ("response.completed", "response.incomplete", "error")
                    assert event["type"] != "response.failed", event
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.3 * dice.random()):
                        for _ in range(dice.randint(0, 30)):
                            await wire.recv()
            if dice.random() < 0.5:
                wire.transport.abort()
        return 0

    async def shakes_hands_badly(self, dice: random.Random) -> int:
        """Asks for a WebSocket, and then sends no frames, or leaves."""

        async def work(reader: Reader, writer: Writer) -> int:
            head = f"GET {RESPONSES} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            head += dice.choice(["", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"])
            writer.write(head.encode() + b"\r\n" + dice.randbytes(dice.choice([0, 2, 300])))
            if dice.random() < 0.7:
                await reader.read(100)
            return 0

        return await self._with(work, dice)

    def _message(self, dice: random.Random) -> Json:
        lane = dice.choice([{}, {"stream_id": "a"}, {"stream_id": "b"}])
        text = {"input": "x" * dice.choice([1, 50, 700]), "max_output_tokens": dice.choice([1, 20, 100])}
        return {"type": "response.create", "model": "m", "store": dice.random() < 0.3, **text, **lane}


KINDS: tuple[Callable[[Visitors, random.Random], Coroutine[Any, Any, int]], ...] = (
    Visitors.stays,
    Visitors.stays,
    Visitors.reads_slowly,
    Visitors.leaves_soon,
    Visitors.leaves_soon,
    Visitors.leaves_in_the_middle,
    Visitors.leaves_in_the_middle,
    Visitors.closes_its_half,
    Visitors.sends_two_and_leaves,
    Visitors.sends_nonsense,
    Visitors.breaks_off,
    Visitors.talks,
    Visitors.talks,
    Visitors.shakes_hands_badly,
)


def _http(path: str, body: Json, *, last: bool = False) -> bytes:
    """last: of its connection."""
    return _framed(path, json.dumps(body).encode(), b"Connection: close\r\n" if last else b"")


def _framed(path: str, body: bytes, headers: bytes = b"") -> bytes:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n"
    return head % (path.encode(), len(body), headers) + body


async def _answer(reader: Reader) -> tuple[int, bytes]:
    """A whole one; its chunks joined."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    status = int(head.split(b" ", 2)[1])
    if b"content-length" in fields:
        return status, await reader.readexactly(int(fields[b"content-length"]))
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return status, body


def _leave(writer: Writer, dice: random.Random) -> None:
    """In order, or by a reset."""
    if dice.random() < 0.4:
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()
