"""From a body and the conversation before it to a prompt, and to what is generated from it."""

from __future__ import annotations

from collections.abc import Sequence

from headway.errors import RequestError
from headway.runtime.api import GenerateRequest
from headway.runtime.served import ServedModel
from headway.server.body import show
from headway.server.constraint import ForcedCall, Form, check_together, constraint
from headway.server.openai.params import check_min_tokens, forced_call, sampling_params, stop_strings
from headway.server.prompt import Begun, PromptTooLong, check_room, encode, encode_on, output_limit, template_of, tokenize
from headway.server.render import Json
from headway.server.responses.items import Item, template_messages
from headway.server.responses.schemas import LOGPROBS, PromptBody, ResponsesRequest
from headway.text.messages import Message
from headway.text.parts import Reader

LARGEST_RESERVE = 4
"""What `truncation: "auto"` keeps free for the output is at most one part in so many of the context."""


def check(ask: ResponsesRequest) -> None:
    """Refuses, with a 400 that names the field, what no type can refuse and what isn't supported."""
    _check_prompt(ask)
    check_together(_forced(ask), _form(ask))
    if ask.max_tokens is not None:
        raise RequestError(400, "'max_tokens' is called 'max_output_tokens' here.", param="max_tokens")
    if ask.response_format is not None:
        raise RequestError(400, "'response_format' is called 'text.format' here.", param="response_format")
    if ask.background:
        raise RequestError(400, "'background' is not supported; leave it out.", param="background")


def _check_prompt(ask: PromptBody) -> None:
    for field in ("conversation", "prompt"):
        if getattr(ask, field) is not None:
            message = (
                f"'{field}' is not supported: nothing of the kind is kept here. Send 'input', with 'previous_response_id'."
            )
            raise RequestError(400, message, param=field)
    for index, tool in enumerate(ask.tools or ()):
        place = f"tools[{index}]"
        if tool.type != "function":
            message = (
                f"'{place}' is of type {show(tool.type)}, which this server doesn't have; give tools of type \"function\"."
            )
            raise RequestError(400, message, param=place)
        if tool.name is None:
            raise RequestError(400, f"'{place}.name' is missing; it must be a string.", param=f"{place}.name")


def _form(ask: ResponsesRequest) -> Form | None:
    """What `text.format` holds the text to. Raises RequestError 400."""
    asked = ask.text.format if ask.text is not None else None
    if asked is None:
        return None
    if asked.type not in ("text", "json_object", "json_schema"):
        message = f"'text.format.type' must be one of text, json_object, json_schema, not {show(asked.type)}."
        raise RequestError(400, message, param="text.format.type")
    if asked.type == "json_schema" and asked.schema_ is None:
        raise RequestError(400, "'text.format.schema' is missing; it must be a JSON schema.", param="text.format.schema")
    return Form(asked.type, asked.schema_, "text.format")


def _forced(ask: ResponsesRequest) -> ForcedCall | None:
    example = '{"type": "function", "name": ...}'
    return forced_call(ask.tool_choice, lambda choice: choice.get("name"), example, ask.parallel_tool_calls)


async def request(
    served: ServedModel,
    ask: ResponsesRequest,
    items: Sequence[Item],
    response_id: str,
    known: Sequence[Begun],
    default_max_tokens: int | None,
) -> tuple[GenerateRequest, Begun | None]:
    """At the base mode until the speed is known; and what is known of the prompt for the next one. items: the whole
    conversation; known: of what came before. max_output_tokens is lowered to the room that the prompt leaves; a response
    that only prepares the prompt is one token long."""
    if ask.truncation == "auto":
        ids, begun = await _cut_prompt(served, ask, items, ask.max_output_tokens or default_max_tokens), None
    else:
        ids, begun = await prompt(served, ask, items, known)
    room = check_room(served, ids, "input")
    max_tokens = output_limit(ask.max_output_tokens, default_max_tokens, room)
    check_min_tokens(ask, max_tokens)
    held_to = None
    if ask.generate is not False:
        held_to = await constraint(served, _form(ask), _forced(ask), _template_tools(ask))
    generate = GenerateRequest(
        id=response_id,
        prompt=ids,
        max_tokens=1 if ask.generate is False else max_tokens,
        mode=served.modes.base.name,
        sampling=sampling_params(ask, 0, served.info.vocab_size, (ask.top_logprobs or 0) if wants_logprobs(ask) else None),
        stop=stop_strings(ask),
        ignore_eos=bool(ask.ignore_eos),
        min_tokens=0 if ask.generate is False else ask.min_tokens or 0,
        constraint=held_to,
    )
    return generate, begun


async def prompt(
    served: ServedModel, ask: PromptBody, items: Sequence[Item], known: Sequence[Begun]
) -> tuple[list[int], Begun]:
    """Its ids, and what is known of it for a longer one. Raises RequestError 400."""
    earlier = [each.rendered for each in known]
    rendered = template_of(served).render_on(earlier, _messages(ask, items), _template_tools(ask) or None)
    return await encode_on(served, rendered, "input", known)


async def count_tokens(served: ServedModel, ask: PromptBody, items: Sequence[Item]) -> int:
    """What the prompt comes to, whether it leaves room for output or not."""
    _check_prompt(ask)
    if ask.truncation == "auto":
        return len(await _cut_prompt(served, ask, items, None))
    return len(await tokenize(served, _render(served, ask, _messages(ask, items)), "input"))


def wants_logprobs(ask: ResponsesRequest) -> bool:
    return LOGPROBS in (ask.include or ())


def new_reader(served: ServedModel, ask: ResponsesRequest) -> Reader:
    """What tells text from tool calls. With `tool_choice` none, what looks like a call is text."""
    tools = [] if ask.tool_choice == "none" else _template_tools(ask)
    return template_of(served).reader(tools, parallel=ask.parallel_tool_calls is not False)


async def _cut_prompt(served: ServedModel, ask: PromptBody, items: Sequence[Item], wanted: int | None) -> list[int]:
    """Without the oldest turns, as far as they don't fit. wanted: tokens of output that there should be room for."""
    messages = _messages(ask, items)
    reserve = served.info.context_length // LARGEST_RESERVE
    most = served.info.context_length - min(wanted or reserve, reserve)
    fitting = await _fitting(served, ask, messages, most)
    if fitting is not None:
        return fitting
    starts = [index for index, message in enumerate(messages) if message["role"] in ("user", "assistant")] or [0]
    low, high = 1, len(starts) - 1
    while low <= high:  # for the longest end of the conversation that fits
        middle = (low + high) // 2
        ids = await _fitting(served, ask, _from(messages, starts[middle]), most)
        if ids is None:
            low = middle + 1
        else:
            fitting, high = ids, middle - 1
    return fitting or await encode(served, _render(served, ask, _from(messages, starts[-1])), "input")


async def _fitting(served: ServedModel, ask: PromptBody, messages: list[Message], most: int) -> list[int] | None:
    try:
        ids = await tokenize(served, _render(served, ask, messages), "input")
    except PromptTooLong:
        return None
    return ids if len(ids) <= most else None


def _from(messages: list[Message], start: int) -> list[Message]:
    """Without the turns before `start`; what the system says stays."""
    return [message for index, message in enumerate(messages) if index >= start or message["role"] in ("system", "developer")]


def _messages(ask: PromptBody, items: Sequence[Item]) -> list[Message]:
    first: list[Message] = [{"role": "system", "content": ask.instructions}] if ask.instructions else []
    messages = [*first, *template_messages(items)]
    if not messages:
        message = "'input' is missing or empty; it must be a string or a list of at least one item."
        raise RequestError(400, message, param="input")
    return messages


def _render(served: ServedModel, ask: PromptBody, messages: list[Message]) -> str:
    return template_of(served).render(messages, tools=_template_tools(ask) or None)


def _template_tools(ask: PromptBody) -> list[Json]:
    """In chat's form, which templates know."""
    tools = []
    for tool in ask.tools or ():
        function = tool.model_dump(exclude_none=True, exclude={"type"})
        tools.append({"type": "function", "function": function})
    return tools
