"""POST /v1/messages and /v1/messages/count_tokens: from a body to a prompt, and to what is generated from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headway.errors import RequestError
from headway.runtime.api import GenerateRequest
from headway.runtime.served import ServedModel
from headway.sampling.params import SamplingParams
from headway.server.anthropic.blocks import prefill_of, template_messages, template_tools
from headway.server.anthropic.errors import THREAD_UNSUPPORTED
from headway.server.anthropic.schemas import CountTokensRequest, MessagesRequest
from headway.server.body import show
from headway.server.constraint import ForcedCall, Form, check_together, constraint
from headway.server.prompt import PromptTooLong, check_room, encode, template_of, tokenize
from headway.text.parts import Reader


def check(ask: MessagesRequest) -> None:
    """Refuses, with a 400 that names the field, what isn't supported yet."""
    if ask.thread is not None:  # to ignore it would be to answer a conversation's last turn alone
        message = "'thread' is not supported: conversations are not kept here. Send the whole one in 'messages'."
        raise RequestError(400, message, code=THREAD_UNSUPPORTED, param="thread")
    check_together(_forced(ask), _form(ask))


async def request(served: ServedModel, ask: MessagesRequest, answer_id: str) -> GenerateRequest:
    """At the base mode until the speed is known. max_tokens is lowered to the room that the prompt leaves."""
    with _known_words():
        ids = await encode(served, _render(served, ask), "messages")
    held_to = await constraint(served, _form(ask), _forced(ask), template_tools(ask.tools))
    return GenerateRequest(
        id=answer_id,
        prompt=ids,
        max_tokens=min(ask.max_tokens, check_room(served, ids, "messages")),
        mode=served.modes.base.name,
        sampling=SamplingParams(
            temperature=1.0 if ask.temperature is None else ask.temperature,
            top_p=1.0 if ask.top_p is None else ask.top_p,
            top_k=ask.top_k or 0,
        ),
        stop=tuple(ask.stop_sequences or ()),
        constraint=held_to,
    )


def _forced(ask: MessagesRequest) -> ForcedCall | None:
    """What `tool_choice` forces. Raises RequestError 400."""
    choice = ask.tool_choice
    if choice is None or choice.type in ("auto", "none"):
        return None
    if choice.type == "any":
        return ForcedCall(None, not choice.disable_parallel_tool_use)
    if choice.name is None:
        raise RequestError(400, "'tool_choice.name' is missing: say which tool.", param="tool_choice.name")
    return ForcedCall(choice.name, False)


def _form(ask: MessagesRequest) -> Form | None:
    """What `output_config.format` holds the text to. Raises RequestError 400."""
    asked = None if ask.output_config is None else ask.output_config.format
    if asked is None:
        return None
    if asked.get("type") != "json_schema" or not isinstance(asked.get("schema"), dict | bool):
        form = '{"type": "json_schema", "schema": {...}}'
        message = f"'output_config.format' must be {form}, not {show(asked)}."
        raise RequestError(400, message, param="output_config.format")
    return Form("json_schema", asked["schema"], "output_config.format")


async def count_tokens(served: ServedModel, ask: CountTokensRequest) -> int:
    """What the prompt comes to, whether it leaves room for output or not."""
    with _known_words():
        return len(await tokenize(served, _render(served, ask), "messages"))


def new_reader(served: ServedModel, ask: MessagesRequest) -> Reader:
    """What tells text from tool calls. With `tool_choice` none, what looks like a call is text."""
    choice = ask.tool_choice
    tools = [] if choice is not None and choice.type == "none" else template_tools(ask.tools)
    return template_of(served).reader(tools, parallel=not (choice is not None and choice.disable_parallel_tool_use))


@contextmanager
def _known_words() -> Iterator[None]:
    """Clients look for these to shorten the conversation."""
    try:
        yield
    except PromptTooLong as error:
        message = f"prompt is too long: {error.tokens} tokens > {error.most} maximum"
        raise RequestError(400, message, code=error.code, param=error.param) from None


def _render(served: ServedModel, ask: CountTokensRequest) -> str:
    prefill = prefill_of(ask.messages)
    turns = ask.messages if prefill is None else ask.messages[:-1]
    messages = template_messages(ask.system, turns)
    if not messages:
        raise RequestError(400, "'messages' must hold more than the beginning of the answer.", param="messages")
    prompt = template_of(served).render(messages, tools=template_tools(ask.tools) or None)
    return prompt + (prefill or "")
