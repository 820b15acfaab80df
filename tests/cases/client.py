"""A strict client for the tests: no SDK and no HTTP library that would repair anything on the way."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]
TIMEOUT = 120.0
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


@dataclass(frozen=True)
class Reply:
    """headers: names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body.decode("utf-8"))

    @property
    def error(self) -> Json:
        """The error object, its form checked."""
        assert self.headers["content-type"].startswith("application/json"), self
        error = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        assert error["message"] and "\n" not in error["message"], error
        return error


class Client:
    """One server. Each call has a connection of its own."""

    def __init__(self, url: str, model: str) -> None:
        self.url = url
        self.model = model
        self.host, self.port = urlsplit(url).hostname or "", urlsplit(url).port or 0

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT)

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """body: bytes as they are, anything else as JSON."""
        with closing(self.connect()) as connection:
            return exchange(connection, method, path, body, headers)

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Reply:
        return self.send("POST", path, body, headers)

    def get(self, path: str, headers: dict[str, str] | None = None) -> Reply:
        return self.send("GET", path, None, headers)

    def ok(self, path: str, body: Json, headers: dict[str, str] | None = None) -> Json:
        """The answer of a request that must succeed; the chunks of a stream are joined to what it would have been."""
        if body.get("stream"):
            return join(self.stream(path, body, headers))
        reply = self.post(path, body, headers)
        assert reply.status == 200, reply
        answer: Json = reply.json
        return answer

    def stream(self, path: str, body: Json, headers: dict[str, str] | None = None) -> list[Json]:
        """All chunks of a stream that ends in [DONE]."""
        with self.open_stream(path, body, headers) as events:
            return list(events)

    @contextmanager
    def open_stream(self, path: str, body: Json, headers: dict[str, str] | None = None) -> Iterator[Iterator[Json]]:
        with closing(self.connect()) as connection:
            connection.request("POST", path, json.dumps({**body, "stream": True}), headers or {})
            response = connection.getresponse()
            assert response.status == 200, (response.status, response.read())
            assert response.getheader("content-type", "").startswith("text/event-stream")
            yield read_events(response)

    def chat(self, text: str | list[Json] = "Say hi.", **fields: Any) -> Json:
        """The body of a greedy chat request."""
        messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
        return {"model": self.model, "messages": messages, "temperature": 0, "max_tokens": 24, **fields}

    def completion(self, prompt: Any = "Count: one, two, three,", **fields: Any) -> Json:
        return {"model": self.model, "prompt": prompt, "temperature": 0, "max_tokens": 24, **fields}

    def metric(self, name: str, headers: dict[str, str] | None = None, /, **labels: str) -> float:
        """The value of one sample of /metrics; absent ones are 0."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        for line in self.get("/metrics", headers).body.decode().splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found and found[1] == name and wanted <= set((found[2] or "").split(",")):
                return float(found[3])
        return 0.0

    def socket(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=TIMEOUT)


def exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Reply:
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, raw, headers or {})
    response = connection.getresponse()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def read_events(response: http.client.HTTPResponse) -> Iterator[Json]:
    """Every line must be `data: JSON` or empty, in turn; [DONE] must come last, and then the body must end."""
    while line := response.readline():
        text = line.decode("utf-8")
        assert text.startswith("data: ") and text.endswith("\n"), text
        assert response.readline() == b"\n"
        data = text.removeprefix("data: ").removesuffix("\n")
        if data == "[DONE]":
            assert response.read() == b""
            return
        yield json.loads(data)
    raise AssertionError("the stream ended without [DONE]")


def text_of(chunks: list[Json], choice: int = 0) -> str:
    """The joined text of a choice."""
    pieces = [each for chunk in chunks for each in chunk["choices"] if each["index"] == choice]
    return "".join(piece["text"] if "text" in piece else piece["delta"].get("content", "") for piece in pieces)


def join(chunks: list[Json]) -> Json:
    """The answer that the chunks of one choice add up to. Checks what holds for every stream: the same id in all chunks,
    the role first and once, one finish_reason, in the last chunk that has choices."""
    assert not any("error" in chunk for chunk in chunks), chunks
    assert len({chunk["id"] for chunk in chunks}) == 1
    with_choices = [chunk for chunk in chunks if chunk["choices"]]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in with_choices]
    assert reasons[-1] is not None and set(reasons[:-1]) <= {None}, reasons
    text = text_of(chunks)
    logprobs = [piece["logprobs"] for chunk in with_choices for piece in chunk["choices"] if piece["logprobs"]]
    last = with_choices[-1]
    choice: Json = {"index": 0, "finish_reason": reasons[-1], "logprobs": _join_logprobs(logprobs)}
    if "delta" in last["choices"][0]:
        roles = [chunk["choices"][0]["delta"].get("role") for chunk in with_choices]
        assert roles[0] == "assistant" and set(roles[1:]) <= {None}, roles
        choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        if calls := _join_calls(with_choices):
            choice["message"] |= {"content": text or None, "tool_calls": calls}
    else:
        choice["text"] = text
    usages = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    same = {key: last[key] for key in ("id", "model", "service_tier", "time_info", "headway")}
    return {**same, "choices": [choice], "usage": usages[-1] if usages else None}


def _join_calls(chunks: list[Json]) -> list[Json]:
    """Checks that id and name come once, with a call's first delta, and that every delta has its index."""
    calls: list[Json] = []
    for delta in (each for chunk in chunks for each in chunk["choices"][0]["delta"].get("tool_calls", ())):
        if "id" in delta:
            assert delta["index"] == len(calls) and delta["function"]["name"], delta
            calls.append({key: delta[key] for key in ("id", "type", "function")})
        else:
            assert delta["index"] == len(calls) - 1 and set(delta["function"]) == {"arguments"}, delta
            calls[-1]["function"]["arguments"] += delta["function"]["arguments"]
    return calls


def _join_logprobs(pieces: list[Json]) -> Json | None:
    if not pieces:
        return None
    return {
        key: [entry for piece in pieces for entry in piece[key]] if isinstance(value, list) else value
        for key, value in pieces[0].items()
    }


def content_of(answer: Json) -> str:
    """The text of a whole answer, chat or completion."""
    choice = answer["choices"][0]
    text: str = choice["text"] if "text" in choice else choice["message"]["content"]
    return text


def tokens_of(answer: Json) -> list[str]:
    """The texts of its tokens, from the log probabilities."""
    logprobs = answer["choices"][0]["logprobs"]
    return logprobs["tokens"] if "tokens" in logprobs else [entry["token"] for entry in logprobs["content"]]


def wait_for(condition: Any, seconds: float = 30.0) -> None:
    """Until `condition()` is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
