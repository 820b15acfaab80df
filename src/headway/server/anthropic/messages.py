"""POST /v1/messages and /v1/messages/count_tokens: from a body to a prompt, and to what is generated from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headway.errors import RequestError
from headway.grammar.compiler import Grammar
from headway.modes import ModeName
from headway.runtime.api import GenerateRequest
from headway.runtime.served import ServedModel
from headway.sampling.params import SamplingParams
from headway.server.anthropic.blocks import prefill_of, template_messages, template_tools
from headway.server.anthropic.schemas import CountTokensRequest, MessagesRequest
from headway.server.body import show
from headway.server.constraint import grammar_of_calls, grammar_of_format
from headway.server.prompt import PromptTooLong, check_room, encode, template_of, tokenize
from headway.text.parts import Reader


def check(ask: MessagesRequest) -> None:
    """Refuses, with a 400 that names the field, what isn't supported yet."""
    choice, form = ask.tool_choice, _format(ask)
    if choice is not None and choice.type == "tool" and choice.name is None:
        raise RequestError(400, "'tool_choice.name' is missing: say which tool.", param="tool_choice.name")
    if form is None:
        return
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict | bool):
        message = f'\'output_config.format\' must be {{"type": "json_schema", "schema": {{...}}}}, not {show(form)}.'
        raise RequestError(400, message, param="output_config.format")
    if _forces(ask):
        message = "'output_config.format' and a 'tool_choice' that forces a call exclude each other; leave one of them out."
        raise RequestError(400, message, param="output_config.format")


async def request(served: ServedModel, ask: MessagesRequest, answer_id: str) -> GenerateRequest:
    """At standard mode until the speed is known. max_tokens is lowered to the room that the prompt leaves."""
    with _known_words():
        ids = await encode(served, _render(served, ask), "messages")
    constraint = await _constraint(served, ask)
    return GenerateRequest(
        id=answer_id,
        prompt=ids,
        max_tokens=min(ask.max_tokens, check_room(served, ids, "messages")),
        mode=ModeName.STANDARD,
        sampling=SamplingParams(
            temperature=1.0 if ask.temperature is None else ask.temperature,
            top_p=1.0 if ask.top_p is None else ask.top_p,
            top_k=ask.top_k or 0,
        ),
        stop=tuple(ask.stop_sequences or ()),
        constraint=constraint,
    )


async def _constraint(served: ServedModel, ask: MessagesRequest) -> Grammar | None:
    """What the output is held to: calls, or the output's format."""
    choice, form = ask.tool_choice, _format(ask)
    if choice is not None and _forces(ask):
        name = choice.name if choice.type == "tool" else None
        parallel = name is None and not choice.disable_parallel_tool_use
        return await grammar_of_calls(served, template_tools(ask.tools), name, parallel=parallel)
    if form is None:
        return None
    return await grammar_of_format(served.grammars, "json_schema", form["schema"], "output_config.format")


def _forces(ask: MessagesRequest) -> bool:
    return ask.tool_choice is not None and ask.tool_choice.type in ("any", "tool")


def _format(ask: MessagesRequest) -> dict[str, Any] | None:
    return None if ask.output_config is None else ask.output_config.format


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
