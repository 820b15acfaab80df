"""A streamed response, chunk by chunk, into a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from headway.compare.record import RequestRecord, ServedBy
from headway.compare.sse import EventParser


class ChunkReader:
    """Fills the record of one request from the bytes of its event stream.

    keep_text: also keep the text and, where the server lists them (`logprobs`), the tokens. on_delta: called with each delta.
    """

    last_event = "[DONE]"

    def __init__(
        self, record: RequestRecord, *, keep_text: bool = False, on_delta: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self._record = record
        self._keep_text = keep_text
        self._on_delta = on_delta
        self._parser = EventParser()

    def feed(self, data: bytes, now: float) -> bool:
        """Take bytes that came at `now`; true once the stream has said [DONE]. Raises ValueError for what isn't JSON and
        TypeError, KeyError or AttributeError for JSON of another shape."""
        for event in self._parser.feed(data):
            if event.strip() == b"[DONE]":
                return True
            self._take_chunk(json.loads(event), now)
        return False

    def _take_chunk(self, chunk: dict[str, Any], now: float) -> None:
        record = self._record
        for choice in chunk.get("choices") or ():
            self._take_choice(choice, now)
        if (usage := chunk.get("usage")) is not None:
            record.prompt_tokens = usage.get("prompt_tokens")
            record.output_tokens = usage.get("completion_tokens")
            record.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if (tier := chunk.get("service_tier")) is not None:
            record.service_tier = tier
        if (served := chunk.get("headway")) is not None:
            record.served_by = ServedBy.of(served)
        if (info := chunk.get("time_info")) is not None:
            record.time_info = info
        if (error := chunk.get("error")) is not None:
            record.fail(str(error.get("message", error)) if isinstance(error, dict) else str(error))

    def _take_choice(self, choice: dict[str, Any], now: float) -> None:
        record = self._record
        delta = choice.get("delta")
        text = choice.get("text") if delta is None else delta.get("content")
        thought = None if delta is None else delta.get("reasoning_content") or delta.get("reasoning")
        listed = (choice.get("logprobs") or {}).get("content") or ()
        if text or thought or (delta is not None and delta.get("tool_calls")):
            if not record.chunk_times and listed:
                record.first_chunk_tokens = len(listed)
            record.chunk_times.append(now)
        if self._keep_text:
            record.text += text or ""
            record.tokens += [entry["token"] for entry in listed]
        if self._on_delta is not None and delta is not None:
            self._on_delta(delta)
        if choice.get("finish_reason") is not None:
            record.finish_reason = choice["finish_reason"]
