"""Anthropic's Messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headway.compare.record import RequestRecord, ServedBy
from headway.compare.sse import EventParser
from headway.compare.target import Ask, Call
from headway.compare.targets.dialect import Manner

VERSION = "2023-06-01"
FAST_BETA = "fast-mode-2026-02-01"
CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicMessages:
    optional = ("temperature", "output_config")

    def headers(self, key: str | None, variant: str | None) -> dict[str, str]:
        headers = {"anthropic-version": VERSION}
        if key:
            headers["x-api-key"] = key
        if variant == "fast":
            headers["anthropic-beta"] = FAST_BETA
        return headers

    def body(self, ask: Ask, manner: Manner) -> dict[str, Any]:
        system, turns = _turns(ask.messages)
        body: dict[str, Any] = {
            "model": manner.model,
            "max_tokens": ask.max_tokens,
            "messages": turns,
            "stream": True,
        }
        if system:
            body["system"] = system
        if "temperature" not in manner.left_out:
            body["temperature"] = ask.temperature
        if manner.variant is not None:
            body["speed"] = manner.variant
        if ask.tools:
            body["tools"] = [_tool(tool["function"]) for tool in ask.tools]
        if ask.tool_choice is not None:
            body["tool_choice"] = {"type": CHOICES[ask.tool_choice]}
        if ask.schema is not None and "output_config" not in manner.left_out:
            body["output_config"] = {"format": {"type": "json_schema", "schema": ask.schema}}
        return body

    def reader(self, record: RequestRecord) -> MessagesReader:
        return MessagesReader(record)


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    tool = {"name": function["name"], "input_schema": function.get("parameters") or {"type": "object", "properties": {}}}
    return tool if "description" not in function else tool | {"description": function["description"]}


def _turns(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The system text, and the turns in Anthropic's form: calls and results are blocks, and results belong to the user, all of
    a row in one turn."""
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        role, content = message["role"], message.get("content")
        if role == "system":
            system.append(str(content))
        elif role == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
            if not (turns and turns[-1]["role"] == "user" and isinstance(turns[-1]["content"], list)):
                turns.append({"role": "user", "content": []})
            turns[-1]["content"].append(result)
        elif calls := message.get("tool_calls"):
            said = [{"type": "text", "text": content}] if content else []
            turns.append({"role": role, "content": said + [_tool_use(call) for call in calls]})
        else:
            turns.append({"role": role, "content": content})
    return "\n\n".join(system), turns


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are no JSON object (a weak model's) can't be said in this API: they go as the text that they are."""
    arguments = call["function"]["arguments"]
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = arguments
    return {
        "type": "tool_use",
        "id": call["id"],
        "name": call["function"]["name"],
        "input": value if isinstance(value, dict) else {"arguments": arguments},
    }


class MessagesReader:
    """Input tokens: those that were read from a cache, written to one, and all others together, as in OpenAI's API."""

    last_event = "message_stop"

    def __init__(self, record: RequestRecord) -> None:
        self._record = record
        self._parser = EventParser()
        self._pieces: dict[int, list[str]] = {}

    @property
    def calls(self) -> list[Call]:
        return [Call(id_, name, arguments or "{}") for id_, name, arguments in self._pieces.values()]

    def feed(self, data: bytes, now: float) -> bool:
        events = [json.loads(event) for event in self._parser.feed(data)]
        return any(self._take(event, now) for event in events)

    def _take(self, event: dict[str, Any], now: float) -> bool:
        record = self._record
        match event["type"]:
            case "message_start":
                self._take_usage(event["message"].get("usage") or {})
            case "content_block_start":
                if (block := event["content_block"])["type"] == "tool_use":
                    record.chunk_times.append(now)
                    self._pieces[event["index"]] = [block["id"], block["name"], ""]
            case "content_block_delta":
                self._take_delta(event["index"], event["delta"], now)
            case "message_delta":
                record.finish_reason = event["delta"].get("stop_reason")
                self._take_usage(event.get("usage") or {})
                if (served := event.get("headway")) is not None:
                    record.served_by = ServedBy.of(served)
                record.time_info = event.get("time_info")
            case "error":
                record.fail(str(event["error"].get("message", event["error"])))
            case "message_stop":
                return True
        return False

    def _take_delta(self, index: int, delta: dict[str, Any], now: float) -> None:
        piece = delta.get("text") or delta.get("partial_json") or delta.get("thinking")
        if not piece:
            return
        self._record.chunk_times.append(now)
        if delta["type"] == "text_delta":
            self._record.text += piece
        elif delta["type"] == "input_json_delta":
            self._pieces[index][2] += piece

    def _take_usage(self, usage: dict[str, Any]) -> None:
        """The last figure given counts: those of a message_delta are of the whole message."""
        record = self._record
        if (fresh := usage.get("input_tokens")) is not None:
            cached = usage.get("cache_read_input_tokens") or 0
            record.prompt_tokens = fresh + cached + (usage.get("cache_creation_input_tokens") or 0)
            record.cached_tokens = cached
        if (output := usage.get("output_tokens")) is not None:
            record.output_tokens = output
        record.service_tier = usage.get("speed") or record.service_tier
