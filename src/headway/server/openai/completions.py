"""POST /v1/completions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.errors import RequestError
from headway.runtime.api import GenerateRequest, TokenLogprob
from headway.runtime.served import ServedModel
from headway.server.constraint import constraint
from headway.server.modes import Speed
from headway.server.openai.chunks import ChunkRenderer, Envelope
from headway.server.openai.logprobs import CompletionLogprobs, of_prompt
from headway.server.openai.params import (
    check_min_tokens,
    check_stream_options,
    check_token_ids,
    form_of,
    sampling_params,
    stop_strings,
)
from headway.server.openai.schemas import CompletionRequest
from headway.server.output import Output
from headway.server.prompt import check_room, encode
from headway.server.render import Json

DEFAULT_MAX_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, and the text that `echo` puts before the output."""

    ids: list[int]
    text: str


NO_ECHO = Prompt([], "")


def check(ask: CompletionRequest) -> None:
    """Refuses, with a 400 that names the field, what no type can refuse and what isn't supported."""
    check_stream_options(ask)
    if ask.suffix:
        raise RequestError(400, "'suffix' is not supported: this server only continues text.", param="suffix")
    if ask.best_of not in (None, 1, ask.n or 1):
        raise RequestError(400, f"'best_of' is not supported; it must be 1 or n ({ask.n or 1}).", param="best_of")
    if ask.max_tokens == 0 and not ask.echo:
        raise RequestError(400, "'max_tokens' must be an integer of at least 1; 0 is for 'echo' alone.", param="max_tokens")


def num_prompts(ask: CompletionRequest) -> int:
    """Of a request as it came, before anything is tokenized."""
    if not isinstance(ask.prompt, list) or not ask.prompt or isinstance(ask.prompt[0], int):
        return 1
    return len(ask.prompt)


async def prompts(served: ServedModel, ask: CompletionRequest) -> list[Prompt]:
    """A string or a list of ids is one prompt, a list of either several."""
    given = ask.prompt if ask.prompt is not None else ""
    if isinstance(given, str):
        return [await _from_text(served, given)]
    if not given:
        raise RequestError(400, "'prompt' is an empty list; it must hold at least one prompt or token.", param="prompt")
    single = isinstance(given[0], int)
    several: list[Any] = [given] if single else list(given)  # the schema lets no mixed lists pass
    paths = ["prompt"] if single else [f"prompt[{index}]" for index in range(len(several))]
    return [
        await _from_text(served, one) if isinstance(one, str) else _from_ids(served, one, path)
        for one, path in zip(several, paths, strict=True)
    ]


async def _from_text(served: ServedModel, text: str) -> Prompt:
    await asyncio.sleep(0)  # of many prompts, each may take milliseconds: other requests go between
    return Prompt(await encode(served, text, "prompt"), text)


def _from_ids(served: ServedModel, ids: list[int], path: str) -> Prompt:
    if not ids:
        raise RequestError(400, f"'{path}' is an empty list of token ids.", param="prompt")
    check_token_ids(ids, served.info.vocab_size, path)
    text = b"".join(served.tokenizer.token_bytes[token] for token in ids).decode("utf-8", "replace")
    return Prompt(ids, text)


async def requests(
    served: ServedModel, ask: CompletionRequest, all_prompts: Sequence[Prompt], answer_id: str
) -> list[GenerateRequest]:
    """One per choice, prompt by prompt, at the base mode until the speed is known. Seeds count within a prompt, so that
    each prompt's output is what it would be alone."""
    n = ask.n or 1
    held_to = await constraint(served, form_of(ask))
    return [
        GenerateRequest(
            id=f"{answer_id}-{nth * n + choice}",
            prompt=prompt.ids,
            max_tokens=_fitting_max_tokens(served, ask, prompt),
            mode=served.modes.base.name,
            sampling=sampling_params(ask, choice, served.info.vocab_size, ask.logprobs),
            stop=stop_strings(ask),
            ignore_eos=bool(ask.ignore_eos),
            min_tokens=ask.min_tokens or 0,
            constraint=held_to,
            prompt_logprobs=ask.logprobs if ask.echo else None,
        )
        for nth, prompt in enumerate(all_prompts)
        for choice in range(n)
    ]


def _fitting_max_tokens(served: ServedModel, ask: CompletionRequest, prompt: Prompt) -> int:
    """OpenAI's rule: prompt and max_tokens together must fit. Only the default shrinks to the room."""
    room = check_room(served, prompt.ids, "prompt")
    if ask.max_tokens is not None and ask.max_tokens > room:
        message = (
            f"'max_tokens' is too large: the prompt's {len(prompt.ids)} tokens leave room for {room} in the context of "
            f"{served.info.context_length} tokens. Lower 'max_tokens'."
        )
        raise RequestError(400, message, param="max_tokens", code="invalid_value")
    max_tokens = min(DEFAULT_MAX_TOKENS, room) if ask.max_tokens is None else ask.max_tokens
    check_min_tokens(ask, max_tokens)
    return max_tokens


class CompletionRenderer(ChunkRenderer):
    """echoes: the prompt to put before each choice's output; empty without `echo`."""

    whole_kind = chunk_kind = "text_completion"
    nothing = {"text": ""}  # noqa: RUF012

    def __init__(
        self, envelope: Envelope, ask: CompletionRequest, token_bytes: Sequence[bytes], speed: Speed, echoes: Sequence[Prompt]
    ) -> None:
        super().__init__(envelope, ask, speed)
        self._wants_logprobs = ask.logprobs is not None
        self._echoes = echoes
        self._token_bytes = token_bytes
        self._logprobs = [CompletionLogprobs(token_bytes, len(echo.text)) for echo in echoes]

    def begin(self, output: Output) -> list[Json]:
        echo = self._echoes[output.index]
        return [self.chunk(output, {"text": echo.text}, self._describe_prompt(output))] if echo.ids else []

    def increment(self, output: Output, text: str) -> Json:
        return {"text": text}

    def content(self, output: Output) -> Json:
        echo = self._echoes[output.index]
        logprobs = None
        if self._wants_logprobs:
            logprobs = CompletionLogprobs(self._token_bytes, len(echo.text)).take(output.logprobs)
            if echo.ids:
                of_prompt = self._describe_prompt(output)
                logprobs = {key: of_prompt[key] + values for key, values in logprobs.items()}
        return {"text": echo.text + output.text, "logprobs": logprobs}

    def describe(self, output: Output, logprobs: Sequence[TokenLogprob]) -> Any:
        """Offsets go on where the choice's last piece ended."""
        return self._logprobs[output.index].take(logprobs) if self._wants_logprobs else None

    def _describe_prompt(self, output: Output) -> Any:
        echo = self._echoes[output.index]
        return of_prompt(echo.ids, echo.text, output.prompt_logprobs, self._token_bytes) if self._wants_logprobs else None
