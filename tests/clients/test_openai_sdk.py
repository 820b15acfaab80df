"""The official Python SDK against the real server."""

from __future__ import annotations

from typing import Any, Literal

import openai
import pytest
from cases.client import Client
from openai.types import Completion
from openai.types.chat import ChatCompletion

pytestmark = pytest.mark.model

TIERS = pytest.mark.parametrize("tier", ["default", "priority"])
HELLO: Any = [{"role": "user", "content": "Say hello."}]
Tier = Literal["default", "priority"]


@pytest.fixture(scope="module")
def sdk(server: Client) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


@TIERS
def test_chat(sdk: openai.OpenAI, server: Client, tier: Tier) -> None:
    answer = sdk.chat.completions.create(
        model=server.model, messages=HELLO, max_tokens=12, temperature=0, service_tier=tier, logprobs=True, top_logprobs=2
    )
    assert isinstance(answer, ChatCompletion)
    ChatCompletion.model_validate(answer.model_dump())
    choice = answer.choices[0]
    assert answer.service_tier == tier
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    assert answer.usage is not None and answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details is not None and answer.usage.completion_tokens_details is not None
    assert choice.logprobs is not None and choice.logprobs.content is not None
    assert len(choice.logprobs.content) == answer.usage.completion_tokens
    assert answer.model_extra is not None
    assert answer.model_extra["headway"]["mode"] == ("fast" if tier == "priority" else "standard")
    assert answer.model_extra["time_info"]["total_time"] > 0


@TIERS
def test_chat_stream_says_the_same(sdk: openai.OpenAI, server: Client, tier: Tier) -> None:
    whole = sdk.chat.completions.create(model=server.model, messages=HELLO, max_tokens=12, temperature=0)
    chunks = list(
        sdk.chat.completions.create(
            model=server.model,
            messages=HELLO,
            max_tokens=12,
            temperature=0,
            service_tier=tier,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert {chunk.service_tier for chunk in chunks} == {tier}
    assert chunks[-1].usage is not None and whole.usage is not None
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_the_stream_helper_accumulates(sdk: openai.OpenAI, server: Client) -> None:
    fields: dict[str, Any] = {"model": server.model, "messages": HELLO, "temperature": 0}
    text = sdk.chat.completions.create(**fields, max_tokens=12).choices[0].message.content or ""
    with sdk.chat.completions.stream(**fields, stop=text[6]) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == text[: text.index(text[6])]
    assert final.choices[0].finish_reason == "stop"


@TIERS
def test_completions(sdk: openai.OpenAI, server: Client, tier: Tier) -> None:
    fields: dict[str, Any] = {"model": server.model, "prompt": "Once upon", "max_tokens": 8, "temperature": 0}
    answer = sdk.completions.create(**fields, logprobs=2, n=2, echo=False, extra_body={"service_tier": tier})
    assert isinstance(answer, Completion)
    Completion.model_validate(answer.model_dump())
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.choices[0].text == answer.choices[1].text
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None and logprobs.tokens is not None and len(logprobs.tokens) == 8
    stream = sdk.completions.create(**fields, stream=True, extra_body={"service_tier": tier})
    assert "".join(chunk.choices[0].text for chunk in stream) == answer.choices[0].text


def test_models(sdk: openai.OpenAI, server: Client) -> None:
    assert [model.id for model in sdk.models.list()] == [server.model, f"{server.model}-fast"]
    assert sdk.models.retrieve(f"{server.model}-fast").owned_by == "headway"


def test_the_alias_is_fast(sdk: openai.OpenAI, server: Client) -> None:
    answer = sdk.chat.completions.create(model=f"{server.model}-fast", messages=HELLO, max_tokens=4)
    assert (answer.model, answer.service_tier) == (f"{server.model}-fast", "priority")


def test_errors_have_their_classes(sdk: openai.OpenAI, server: Client) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        sdk.chat.completions.create(model=server.model, messages=HELLO, temperature=5)
    assert bad.value.param == "temperature" and bad.value.request_id is not None
    with pytest.raises(openai.BadRequestError) as long:
        sdk.chat.completions.create(model=server.model, messages=[{"role": "user", "content": "word " * 10_000}])
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.chat.completions.create(model="other", messages=HELLO)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        sdk.models.retrieve("other")
    with pytest.raises(openai.BadRequestError):
        sdk.chat.completions.create(model=server.model, messages=[])


def test_a_closed_stream_frees_its_row(sdk: openai.OpenAI, server: Client) -> None:
    from cases.client import wait_for

    stream = sdk.chat.completions.create(
        model=server.model, messages=HELLO, max_tokens=4000, stream=True, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    stream.close()
    wait_for(lambda: server.metric("headway_rows", mode="standard") == 0)
