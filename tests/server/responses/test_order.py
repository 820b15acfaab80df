"""Whatever a model writes and however it comes in pieces: the events are in order and add up to the whole response."""

from __future__ import annotations

import json
from typing import Any

from cases.responses import checked, checked_event, join_events, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.modes import ModeName
from headway.runtime.api import Delta, TokenLogprob, Usage
from headway.server.modes import Speed
from headway.server.responses.render import ResponseRenderer
from headway.server.responses.schemas import ResponsesRequest
from headway.server.responses.turn import _repeated
from headway.text.parts import PlainReader
from headway.text.toolcalls import ToolReader
from server.scripted import TIMING, ByteTokenizer

Json = dict[str, Any]
CALL = '<tool_call>{"name": "now", "arguments": {"a": "}\\"é"}}</tool_call>'
PIECES = st.sampled_from(["Look. ", CALL, CALL, "\n", "<tool_call>", "</tool_call>", "<tool", '{"name": ', "🫠", "", "{}"])
USAGE = Usage(5, 3, 2, engine_seconds=0.1, attainment=1.0, pace=20.0)


def renderer(reader: str, logprobs: bool) -> ResponseRenderer:
    repeated = _repeated(ResponsesRequest(model="m", input="hi"), Speed(ModeName.STANDARD, None, "default"))
    return ResponseRenderer(
        {"id": "resp_0", "object": "response", "created_at": 1, **repeated},
        ModeName.STANDARD,
        PlainReader if reader == "plain" else lambda: ToolReader("hermes", ["now"], parallel=reader == "parallel"),
        ByteTokenizer.token_bytes if logprobs else None,
    )


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PIECES, max_size=6).map("".join),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.sampled_from(["plain", "parallel", "single"]),
    st.sampled_from(["stop", "length"]),
    st.booleans(),
    st.integers(0, 200),
)
def test_events_add_up(text: str, sizes: list[int], reader: str, reason: Any, logprobs: bool, cut: int) -> None:
    text = text[: len(text) - cut % (len(text) + 1)]
    deltas, at, number = [], 0, 0
    entries = (TokenLogprob(65, -0.5, ((66, -1.0),)),) if logprobs else ()
    while at < len(text):
        size = sizes[number % len(sizes)]
        deltas.append(Delta(text[at : at + size], 1, entries))
        at, number = at + size, number + 1
    deltas.append(Delta("", 1, entries, reason, usage=USAGE, timing=TIMING))
    rendered = renderer(reader, logprobs)
    events = [event for delta in deltas for event in rendered.feed(0, delta)]
    whole = rendered.whole()
    response = join_events([*events, *rendered.end()])
    assert response == checked(whole)
    assert response["status"] == ("incomplete" if reason == "length" else "completed")
    for item in response["output"]:
        if item["type"] == "function_call":
            assert item["status"] == ("completed" if _is_object(item["arguments"]) else "incomplete")
    if reader == "plain":
        assert text_of(response) == text
        assert len(response["output"]) == 1
        if logprobs:
            assert len(response["output"][0]["content"][0]["logprobs"]) == len(deltas)
    if reader == "single":
        assert sum(item["type"] == "function_call" for item in response["output"]) <= 1


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5), st.integers(1, 5))
def test_a_failure_can_come_at_any_point(pieces: list[str], after: int) -> None:
    from headway.errors import RequestError

    rendered = renderer("parallel", False)
    events = [event for piece in pieces[:after] for event in rendered.feed(0, Delta(piece, 1))]
    response = join_events([*events, *rendered.failure(RequestError(500, "half a character: \ud83d"))])
    assert response["status"] == "failed" and checked_event(events[0])["type"] == "response.created"
    assert all(item["status"] == "incomplete" for item in response["output"])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
