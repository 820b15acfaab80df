"""OpenAI's Chat Completions, as OpenAI and everybody else has them."""

from __future__ import annotations

from typing import Any

from headway.compare.chunks import ChunkReader
from headway.compare.record import RequestRecord
from headway.compare.target import Ask, Call
from headway.compare.targets.dialect import Manner


class OpenAIChat:
    optional = ("ignore_eos", "temperature", "stream_options", "max_tokens", "response_format")

    def headers(self, key: str | None, variant: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, ask: Ask, manner: Manner) -> dict[str, Any]:
        left_out = manner.left_out
        length = "max_completion_tokens" if "max_tokens" in left_out else "max_tokens"
        body: dict[str, Any] = {"model": manner.model, "messages": list(ask.messages), length: ask.max_tokens, "stream": True}
        if "stream_options" not in left_out:
            body["stream_options"] = {"include_usage": True}
        if "temperature" not in left_out:
            body["temperature"] = ask.temperature
        if manner.variant is not None:
            body["service_tier"] = manner.variant
        if ask.ignore_eos and "ignore_eos" not in left_out:
            body["ignore_eos"] = True
        if ask.tools:
            body["tools"] = list(ask.tools)
        if ask.tool_choice is not None:
            body["tool_choice"] = ask.tool_choice
        if ask.schema is not None and "response_format" not in left_out:
            form = {"name": "answer", "schema": ask.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def reader(self, record: RequestRecord) -> ChatReader:
        return ChatReader(record)


class ChatReader:
    """calls: the pieces of each joined, by the index that they bear."""

    last_event = ChunkReader.last_event

    def __init__(self, record: RequestRecord) -> None:
        self._chunks = ChunkReader(record, keep_text=True, on_delta=self._take)
        self._pieces: dict[int, list[str]] = {}

    def feed(self, data: bytes, now: float) -> bool:
        return self._chunks.feed(data, now)

    @property
    def calls(self) -> list[Call]:
        return [Call(*self._pieces[index]) for index in sorted(self._pieces)]

    def _take(self, delta: dict[str, Any]) -> None:
        for place, call in enumerate(delta.get("tool_calls") or ()):
            index = call.get(
                "index", len(self._pieces) if call.get("id") else place
            )  # some servers give whole calls, unnumbered
            pieces = self._pieces.setdefault(index, ["", "", ""])
            function = call.get("function") or {}
            pieces[0] = call.get("id") or pieces[0]
            pieces[1] = function.get("name") or pieces[1]
            pieces[2] += function.get("arguments") or ""
