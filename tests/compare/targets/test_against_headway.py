"""Both APIs of headway's own server, whose engine plays a script."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from cases.client import Client
from server.live import live

from headway.compare.target import Answer, Ask
from headway.compare.targets.endpoint import Patience
from headway.compare.targets.name import parse_target
from headway.compare.targets.opened import opened
from headway.modes import ModeName

CALL = 'Look. <tool_call>{"name": "now", "arguments": {"zone": "UTC"}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {"zone": {}}}}}
HELLO = [{"role": "user", "content": "What time is it?"}]
FORMS = pytest.mark.parametrize("form", ["{}#m", "{}/v1/messages#m"])
PATIENCE = Patience(retries=1)


@pytest.fixture(scope="module")
def calling() -> Iterator[Client]:
    with live({"tokens": list(CALL.encode())}) as (_, client):
        yield client


@pytest.fixture(scope="module")
def full() -> Iterator[Client]:
    with live({}, seats=0) as (_, client):
        yield client


def asked(target: str, ask: Ask, url: str | None = None) -> tuple[Answer, bool | None]:
    async def run() -> tuple[Answer, bool | None]:
        async with opened([parse_target(target)], url=url, patience=PATIENCE, environment={}) as (opened_target,):
            if opened_target.model is None:
                await opened_target.probe()
            answer = await opened_target.ask(ask)
            return answer, opened_target.served_as_asked(answer.record)

    return asyncio.run(run())


@FORMS
@pytest.mark.parametrize("speed", ["", "@fast"])
def test_text_and_calls_and_tokens(calling: Client, form: str, speed: str) -> None:
    answer, as_asked = asked(form.format(calling.url) + speed, Ask(HELLO, 100, tools=[TOOL]))
    record = answer.record
    assert record.outcome == "success", record.reason
    assert answer.text.strip() == "Look."
    assert [(call.name, call.arguments) for call in answer.calls] == [("now", '{"zone": "UTC"}')]
    assert record.output_tokens == len(CALL)
    assert record.prompt_tokens is not None and record.prompt_tokens > 0
    assert record.cached_tokens == 2
    assert record.served_by is not None
    assert record.served_by.mode == (ModeName.FAST if speed else ModeName.STANDARD)
    assert as_asked is True


@FORMS
def test_what_it_said_can_be_said_again(calling: Client, form: str) -> None:
    answer, _ = asked(form.format(calling.url), Ask(HELLO, 100, tools=[TOOL]))
    (call,) = answer.calls
    said = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    turns = [*HELLO, {"role": "assistant", "content": answer.text, "tool_calls": [said]}]
    turns.append({"role": "tool", "tool_call_id": call.id, "content": "12:00"})
    again, _ = asked(form.format(calling.url), Ask(turns, 100, tools=[TOOL]))
    assert again.record.succeeded, again.record.reason
    assert (again.record.prompt_tokens or 0) > (answer.record.prompt_tokens or 0)


@pytest.mark.parametrize("mode", ["standard", "fast"])
def test_modes_by_their_names(calling: Client, mode: str) -> None:
    answer, as_asked = asked(mode, Ask(HELLO, 100), url=calling.url)
    assert answer.record.succeeded
    assert as_asked is True


@FORMS
def test_a_full_house_is_a_refusal_that_was_tried_again(full: Client, form: str) -> None:
    answer, _ = asked(form.format(full.url), Ask(HELLO, 8))
    assert answer.record.outcome == "failure"
    assert answer.record.status in (429, 529)
    assert answer.record.retries == 1
    assert "all seats are taken" in (answer.record.reason or "")


@FORMS
def test_an_unknown_model_is_a_failure_that_names_it(calling: Client, form: str) -> None:
    answer, _ = asked(form.format(calling.url).replace("#m", "#nonesuch"), Ask(HELLO, 8))
    assert answer.record.status == 404
    assert "nonesuch" in (answer.record.reason or "")
