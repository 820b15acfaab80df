"""Prompt text to token ids, with the context's limit looked at first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import RequestError
from headway.runtime.served import ServedModel
from headway.text.template import ChatTemplate, Rendered

THREAD_ABOVE = 20_000
"""Characters of text from which tokenizing moves to a thread: below, the hop costs more than it saves."""


async def encode_start(served: ServedModel, text: str) -> list[int]:
    """Ids of text, or of its beginning if there are more than the tokenizer gives at a time."""
    text = text[: served.info.context_length * max(served.tokenizer.max_token_bytes, 1)]
    while True:
        try:
            if len(text) > THREAD_ABOVE:
                return await asyncio.to_thread(served.tokenizer.encode, text)
            return served.tokenizer.encode(text)
        except RequestError as error:
            if error.code != "context_length_exceeded":
                raise
            text = text[: len(text) // 2]


async def encode(served: ServedModel, text: str, param: str) -> list[int]:
    """Ids of `text`, as `tokenize` gives them, that leave room for output; found not to without tokenizing where the text can't
    fit even if each token stood for as many bytes as the longest one does."""
    context = served.info.context_length
    if len(text) > THREAD_ABOVE:
        least = -(-len(text.encode()) // max(served.tokenizer.max_token_bytes, 1))
        if least >= context:
            raise PromptTooLong(context, least, param, at_least=True)
    ids = await tokenize(served, text, param)
    check_room(served, ids, param)
    return ids


@dataclass(frozen=True, slots=True)
class Begun:
    """A conversation's prompt, and the ids of its first `num_chars` characters, which end in the tokenizer's seam: what needn't
    be rendered and tokenized again for a conversation that goes on."""

    rendered: Rendered
    num_chars: int
    ids: list[int]


async def encode_on(served: ServedModel, rendered: Rendered, param: str, known: Sequence[Begun]) -> tuple[list[int], Begun]:
    """What `encode` gives for a conversation's prompt, sooner where it begins with what is known; and what is known then."""
    text = rendered.text
    begun = next((each for each in known if each.ids and text.startswith(each.rendered.text[: each.num_chars])), None)
    if begun is not None:
        head, start = begun.ids, begun.num_chars
        rest = text[start:]
        new = await tokenize(served, rest, param) if rest else []
        ids = [*head, *new]
        check_room(served, ids, param)
    else:
        head, start, rest = [], 0, text
        ids = new = await encode(served, text, param)
    seam = served.tokenizer.seam
    num_seams = new.count(seam.token) if seam is not None else 0
    if seam is None or num_seams != rest.count(seam.text):  # a seam that was written by someone else isn't cut at
        return ids, Begun(rendered, 0, [])
    if not num_seams:
        return ids, Begun(rendered, start, head)
    num_chars = start + rest.rindex(seam.text) + len(seam.text)
    return ids, Begun(rendered, num_chars, ids[: len(ids) - new[::-1].index(seam.token)])


async def tokenize(served: ServedModel, text: str, param: str) -> list[int]:
    """Ids of `text`; empty text gives the token that starts a document. Raises PromptTooLong if it is too much for the
    tokenizer."""
    try:
        if len(text) > THREAD_ABOVE:
            ids = await asyncio.to_thread(served.tokenizer.encode, text)
        else:
            ids = served.tokenizer.encode(text)
    except RequestError as error:
        if error.code != "context_length_exceeded":
            raise
        context = served.info.context_length
        raise PromptTooLong(context, context, param, at_least=True) from None
    return ids or [served.tokenizer.start_of_document]


def check_room(served: ServedModel, ids: list[int], param: str) -> int:
    """Tokens left for the output, at least 1."""
    context = served.info.context_length
    if len(ids) >= context:
        raise PromptTooLong(context, len(ids), param)
    return context - len(ids)


def output_limit(asked: int | None, default: int | None, room: int) -> int:
    """Tokens that the output may have. asked, default: the request's limit and that of requests without one, None if there is
    none. room: what the prompt leaves."""
    wanted = default if asked is None else asked
    return room if wanted is None else min(wanted, room)


class PromptTooLong(RequestError):
    """tokens: what the prompt comes to (at least: it wasn't tokenized). most: what a prompt may have."""

    def __init__(self, context: int, tokens: int, param: str, *, at_least: bool = False) -> None:
        message = (
            f"This model's maximum context length is {context} tokens, prompt and output together, "
            f"but '{param}' comes to {'at least ' if at_least else ''}{tokens} tokens. Shorten it."
        )
        super().__init__(400, message, code="context_length_exceeded", param=param)
        self.tokens = tokens
        self.most = context - 1


def template_of(served: ServedModel) -> ChatTemplate:
    """Raises RequestError 400 if the model has none."""
    if served.template is None:
        raise RequestError(400, f"{served.id} has no chat template; use /v1/completions, or serve it with --chat-template.")
    return served.template
