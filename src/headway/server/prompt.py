"""Prompt text to token ids, with the context's limit looked at first."""

from __future__ import annotations

import asyncio

from headway.errors import RequestError
from headway.runtime.served import ServedModel

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
    """Ids of `text`; empty text gives the token that starts a document. Raises RequestError 400 context_length_exceeded,
    without tokenizing where the text can't fit even if each token stood for as many bytes as the longest one does."""
    context = served.info.context_length
    if len(text) > THREAD_ABOVE:
        least = -(-len(text.encode()) // max(served.tokenizer.max_token_bytes, 1))
        if least >= context:
            raise too_long(context, f"at least {least}", param)
        ids = await asyncio.to_thread(served.tokenizer.encode, text)
    else:
        ids = served.tokenizer.encode(text)
    ids = ids or [served.tokenizer.start_of_document]
    check_room(served, ids, param)
    return ids


def check_room(served: ServedModel, ids: list[int], param: str) -> int:
    """Tokens left for the output, at least 1."""
    context = served.info.context_length
    if len(ids) >= context:
        raise too_long(context, str(len(ids)), param)
    return context - len(ids)


def too_long(context: int, tokens: str, param: str) -> RequestError:
    message = (
        f"This model's maximum context length is {context} tokens, prompt and output together, "
        f"but '{param}' comes to {tokens} tokens. Shorten it."
    )
    return RequestError(400, message, code="context_length_exceeded", param=param)
