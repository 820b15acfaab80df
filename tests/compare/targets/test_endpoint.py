"""A question in, an answer out, whatever API is behind it, and whatever goes wrong there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from headway.compare.target import Answer, Ask
from headway.compare.targets.endpoint import EndpointTarget, Patience
from headway.compare.targets.name import parse_target
from headway.compare.targets.opened import OWN_KEY, check_keys, opened
from headway.errors import HeadwayError, UsageError

from ..endpoint import FakeServer, serving

T = TypeVar("T")
CHAT, MESSAGES = "{url}#fake", "{url}/v1/messages#fake"
BOTH = pytest.mark.parametrize("form", [CHAT, MESSAGES])
ASK = Ask([{"role": "user", "content": "hi"}], 8)
TOOL = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object"}}}
WORLD = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What time is it?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "now", "arguments": '{"zone": "UTC"}'}},
            {"id": "b", "type": "function", "function": {"name": "now", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "12:00"},
    {"role": "tool", "tool_call_id": "b", "content": "13:00"},
]


def with_target(
    server: FakeServer,
    form: str,
    work: Callable[[EndpointTarget], Awaitable[T]],
    environment: dict[str, str] | None = None,
    patience: Patience | None = None,
) -> T:
    async def run() -> T:
        async with serving(server):
            name = parse_target(form.format(url=server.url))
            async with opened([name], environment=environment or {}, patience=patience) as (target,):
                return await work(target)

    return asyncio.run(run())


def asked(server: FakeServer, form: str, ask: Ask = ASK, **more: Any) -> Answer:
    return with_target(server, form, lambda target: target.ask(ask), **more)


def no_waiting(waits: list[float]) -> Callable[[EndpointTarget], Awaitable[Answer]]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def work(target: EndpointTarget) -> Awaitable[Answer]:
        target.sleep = sleep
        return target.ask(ASK)

    return work


@BOTH
def test_an_answer_has_text_and_tokens(form: str) -> None:
    answer = asked(FakeServer(tokens=6, per_chunk=2), form)
    assert answer.record.outcome == "success"
    assert answer.text == " go" * 6
    assert answer.record.output_tokens == 6
    assert len(answer.record.chunk_times) == 3
    assert answer.calls == []


def test_all_input_tokens_count_and_the_cached_ones_are_known() -> None:
    record = asked(FakeServer(), MESSAGES).record
    assert (record.prompt_tokens, record.cached_tokens) == (8, 2)


def test_chat_is_asked_in_openais_words() -> None:
    server = FakeServer()
    asked(server, CHAT + "@priority", Ask(WORLD, 8, tools=[TOOL], tool_choice="required", schema={"type": "object"}))
    body = server.seen[0]
    assert body["service_tier"] == "priority"
    assert body["messages"] == WORLD
    assert (body["tools"], body["tool_choice"]) == ([TOOL], "required")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert body["stream_options"] == {"include_usage": True}


def test_messages_are_asked_in_anthropics_words() -> None:
    server = FakeServer()
    answer = asked(server, MESSAGES + "@fast", Ask(WORLD, 8, tools=[TOOL], tool_choice="required", schema={"type": "object"}))
    body = server.seen[0]
    assert (body["system"], body["speed"], body["tool_choice"]) == ("Be brief.", "fast", {"type": "any"})
    assert body["tools"] == [{"name": "now", "description": "The time.", "input_schema": {"type": "object"}}]
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "now", "input": {"zone": "UTC"}},
        {"type": "tool_use", "id": "b", "name": "now", "input": {}},
    ]
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == ["a", "b"]
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [("toolu_1", "now", '{"zone": "UTC"}')]
    assert answer.record.service_tier == "fast"


def test_a_wrong_key_is_said_and_never_shown() -> None:
    async def probe(target: EndpointTarget) -> None:
        with pytest.raises(HeadwayError, match="the API key is refused") as caught:
            await target.probe()
        assert "sk-secret" not in str(caught.value)

    with_target(FakeServer(key="right"), CHAT, probe, {OWN_KEY: "sk-secret"})


@BOTH
def test_a_right_key_is_taken(form: str) -> None:
    assert asked(FakeServer(key="right"), form, environment={OWN_KEY: "right"}).record.succeeded


def test_providers_keys_go_to_providers_alone() -> None:
    answer = asked(FakeServer(key="sk-openai"), CHAT, environment={"OPENAI_API_KEY": "sk-openai"})
    assert answer.record.status == 401
    assert "sk-openai" not in (answer.record.reason or "")


def test_a_missing_key_is_found_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        check_keys([parse_target("anthropic:claude-opus-5-5")], {})


def test_a_provider_may_be_elsewhere() -> None:
    async def run() -> tuple[dict[str, Any], Answer]:
        async with serving(FakeServer(key="k")) as server:
            environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1/"}
            async with opened([parse_target("openai:gpt@flex")], environment=environment) as (target,):
                answer = await target.ask(Ask(ASK.messages, 8, ignore_eos=True))
            return server.seen[0], answer

    body, answer = asyncio.run(run())
    assert answer.record.succeeded
    assert body["max_completion_tokens"] == 8
    assert not body.keys() & {"max_tokens", "ignore_eos"}  # OpenAI's models refuse the one, and don't know the other


@BOTH
def test_an_unknown_model_is_named(form: str) -> None:
    async def probe(target: EndpointTarget) -> None:
        with pytest.raises(HeadwayError, match=r"no model 'fake' at http://\S+, or nothing there"):
            await target.probe()

    with_target(FakeServer(model="other"), form, probe)


@pytest.mark.parametrize("headers", [{"retry-after": "7"}, {"retry-after-ms": "7000", "retry-after": "99"}])
@BOTH
def test_a_busy_target_is_asked_again_when_it_wants(form: str, headers: dict[str, str]) -> None:
    waits: list[float] = []
    answer = with_target(FakeServer(busy=2, busy_headers=headers), form, no_waiting(waits))
    assert waits == [7.0, 7.0]
    assert answer.record.succeeded
    assert answer.record.retries == 2
    assert answer.record.reason is None
    assert answer.record.started > answer.record.intended  # latencies count from the first try


def test_a_busy_target_that_names_no_time_is_asked_ever_more_rarely() -> None:
    waits: list[float] = []
    answer = with_target(FakeServer(busy=99), CHAT, no_waiting(waits), patience=Patience(retries=3))
    assert waits == [1.0, 2.0, 4.0]
    assert (answer.record.outcome, answer.record.status, answer.record.retries) == ("failure", 429, 3)


@pytest.mark.parametrize("headers", [{"retry-after": "3600"}, {"retry-after": "1", "x-should-retry": "false"}])
def test_a_target_that_asks_for_too_much_is_given_up(headers: dict[str, str]) -> None:
    waits: list[float] = []
    answer = with_target(FakeServer(busy=99, busy_headers=headers), CHAT, no_waiting(waits))
    assert waits == []
    assert answer.record.reason == "HTTP 429: slow down"


@BOTH
def test_a_stream_that_is_cut_is_a_failure_and_is_not_asked_again(form: str) -> None:
    server = FakeServer(cut_after=2, tokens=4)
    answer = asked(server, form)
    assert answer.record.outcome == "failure"
    assert answer.record.reason
    assert len(answer.record.chunk_times) == 2
    assert len(server.seen) == 1


@BOTH
def test_without_usage_tokens_are_unknown(form: str) -> None:
    record = asked(FakeServer(usage=False), form).record
    assert record.succeeded
    assert record.output_tokens is None


def test_what_is_refused_is_left_out_and_remembered() -> None:
    server = FakeServer(refuses=("temperature", "stream_options", "max_tokens"))

    async def twice(target: EndpointTarget) -> tuple[Answer, set[str]]:
        await target.ask(ASK)
        return await target.ask(ASK), target.left_out

    answer, left_out = with_target(server, CHAT, twice)
    assert answer.record.succeeded
    assert left_out == {"temperature", "stream_options", "max_tokens"}
    assert len(server.seen) == 5
    assert server.seen[-1]["max_completion_tokens"] == 8


def test_a_schema_that_is_refused_is_left_out_of_that_question_alone() -> None:
    schema = {"type": "object"}

    async def run(target: EndpointTarget) -> tuple[Answer, Answer, int]:
        refused = await target.ask(replace(ASK, schema=schema))
        server.refuses = ()
        return refused, await target.ask(replace(ASK, schema=schema)), target.unheld

    server = FakeServer(refuses=("response_format",))
    first, second, unheld = with_target(server, CHAT, run)
    assert first.record.succeeded and second.record.succeeded
    assert unheld == 1
    assert ["response_format" in body for body in server.seen] == [True, False, True]


def test_the_tier_is_never_left_out() -> None:
    answer = asked(FakeServer(refuses=("service_tier",)), CHAT + "@priority")
    assert answer.record.outcome == "failure"
    assert "service_tier" in (answer.record.reason or "")


@pytest.mark.parametrize(
    ("form", "expected"), [(CHAT, True), (CHAT + "@fast", False), (MESSAGES + "@fast", True), (MESSAGES, None)]
)
def test_whether_it_was_served_as_asked(form: str, expected: bool | None) -> None:
    async def ask(target: EndpointTarget) -> bool | None:
        return target.served_as_asked((await target.ask(ASK)).record)

    assert with_target(FakeServer(), form, ask) is expected
