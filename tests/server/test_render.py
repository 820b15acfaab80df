"""What every dialect makes of the same deltas: the streamed events add up to the whole answer, however the text was cut."""

from __future__ import annotations

import json
from typing import Any

from cases.messages import join_events
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import Delta, Timing, TokenLogprob, Usage
from headway.server.anthropic.render import MessageRenderer
from headway.server.anthropic.shapes import MessageAnswer
from headway.server.modes import Speed
from headway.server.openai.chat import ChatRenderer
from headway.server.openai.chunks import Envelope
from headway.server.openai.schemas import ChatRequest
from headway.server.openai.shapes import ChatChunk, ChatCompletion
from headway.server.render import Json, Renderer
from headway.text.toolcalls import ToolReader

from .scripted import World

USAGE = Usage(10, 7, 4, engine_seconds=0.5, attainment=1.0, pace=20.0)
TIMING = Timing(0.1, 0.2, 0.3, 0.6)
CALL = '<tool_call>{"name": "f", "arguments": {"a": [1, "}"]}}</tool_call>'
TEXTS = [
    "",
    "Just text.",
    CALL,
    f"First. {CALL}\n{CALL}",
    f"{CALL} and text, {CALL}",
    '<tool_call>{"name": "f", "arguments": {"a": "b',
]
TOOLS = [{"type": "function", "function": {"name": "f"}}]

pieces_of_texts = st.tuples(st.sampled_from(TEXTS), st.lists(st.integers(0, 80), max_size=10)).map(
    lambda drawn: _cut(drawn[0], drawn[1])
)
ends = st.sampled_from([("stop", None), ("length", None), ("stop", "###")])


def _cut(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts})
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def deltas(pieces: list[str], end: tuple[Any, str | None], *, logprobs: bool) -> list[Delta]:
    logprob = (TokenLogprob(0, -1.0),) if logprobs else ()
    *first, last = pieces
    return [
        *(Delta(piece, 1, logprob, cached_tokens=4) for piece in first),
        Delta(last, 1, logprob, end[0], end[1], None, USAGE, TIMING, 4),
    ]


def play(renderer: Renderer, given: list[Delta]) -> list[Json]:
    events = [event for delta in given for event in renderer.feed(0, delta)]
    return [*events, *renderer.end()]


def message_renderer() -> MessageRenderer:
    return MessageRenderer("msg_1", "req_1", "m", ModeName.FAST, 10, False, lambda: ToolReader("hermes", ["f"]))


def chat_renderer(**fields: Any) -> ChatRenderer:
    ask = ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS, **fields})
    envelope = Envelope("chatcmpl-1", 1, "m", "default", "hw_1")
    return ChatRenderer(envelope, ask, World().served, Speed(ModeName.STANDARD, None, "default"))


@settings(max_examples=200, deadline=None)
@given(pieces_of_texts, ends)
def test_messages_come_in_order_and_add_up(pieces: list[str], end: tuple[Any, str | None]) -> None:
    given = deltas(pieces, end, logprobs=False)
    renderer = message_renderer()
    events = play(renderer, given)
    whole = renderer.whole()
    MessageAnswer.model_validate(whole)
    joined = join_events(events)
    for block, other in zip(joined["content"], whole["content"], strict=True):
        if isinstance(block.get("input"), str):  # cut short: what is there of it
            assert whole["stop_reason"] != "tool_use" and block["input"].startswith('{"a": "b') and other["input"] == {}
            block["input"] = other["input"]
    assert joined == whole
    pings = [index for index, event in enumerate(events) if event["type"] == "ping"]
    assert [events[index - 1]["type"] for index in pings] == (["content_block_start"] if whole["content"] else [])


@settings(max_examples=200, deadline=None)
@given(pieces_of_texts, ends, st.booleans())
def test_chunks_add_up(pieces: list[str], end: tuple[Any, str | None], logprobs: bool) -> None:
    given = deltas(pieces, end, logprobs=logprobs)
    renderer = chat_renderer(logprobs=logprobs)
    chunks = play(renderer, given)
    whole = ChatCompletion.model_validate(renderer.whole()).choices[0]
    text, calls, entries, reasons = "", [], [], []
    for chunk in chunks:
        choice = ChatChunk.model_validate(chunk).choices[0]
        text += choice.delta.content or ""
        reasons.append(choice.finish_reason)
        entries += choice.logprobs.content if choice.logprobs else []
        for call in choice.delta.tool_calls or ():
            if call.id is not None:
                assert call.index == len(calls) and call.type == "function" and call.function.name == "f"
                calls.append([call.id, call.function.arguments])
            else:
                assert call.index == len(calls) - 1 and call.function.name is None
                calls[-1][1] += call.function.arguments
    assert text == (whole.message.content or "")
    assert calls == [[call.id, call.function.arguments] for call in whole.message.tool_calls or ()]
    assert len({key for key, _ in calls}) == len(calls)
    assert reasons == [None] * (len(reasons) - 1) + [whole.finish_reason]
    assert len(entries) == (len(given) if logprobs else 0)


def test_tool_calls_are_the_reason_only_if_each_is_whole() -> None:
    for text, end, chat, messages in (
        (CALL, ("stop", None), "tool_calls", "tool_use"),
        (CALL, ("length", None), "length", "max_tokens"),
        (CALL, ("stop", "##"), "stop", "stop_sequence"),
        (TEXTS[-1], ("length", None), "length", "max_tokens"),
        (TEXTS[-1], ("stop", None), "stop", "end_turn"),
        (CALL + TEXTS[-1], ("stop", None), "stop", "end_turn"),
    ):
        given = deltas([text], end, logprobs=False)
        chunks, message = chat_renderer(), message_renderer()
        assert play(chunks, given)[-1]["choices"][0]["finish_reason"] == chat
        assert join_events(play(message, given))["stop_reason"] == messages


def test_a_message_says_its_usage_from_the_start() -> None:
    renderer = message_renderer()
    events = play(renderer, deltas(["a", "b"], ("stop", None), logprobs=False))
    start, end = events[0]["message"]["usage"], events[-2]["usage"]
    assert (start["input_tokens"], start["cache_read_input_tokens"], start["cache_creation_input_tokens"]) == (6, 4, 0)
    assert (start["speed"], start["output_tokens"]) == ("fast", 0)
    assert end == {**start, "output_tokens": 7} == renderer.whole()["usage"]


def test_a_failure_is_the_dialects_last_event() -> None:
    error = RequestError(503, "going \ud83d", retry_after=1.0)
    (event,) = message_renderer().failure(error)
    assert event == {"type": "error", "error": {"type": "overloaded_error", "message": "going ?"}, "request_id": "req_1"}
    (chunk,) = chat_renderer().failure(error)
    assert chunk["error"]["type"] == "server_error" and json.dumps(chunk)


def test_in_a_long_silence_a_message_pings() -> None:
    assert message_renderer().silence() == [{"type": "ping"}]
    assert chat_renderer().silence() == []
