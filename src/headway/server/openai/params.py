"""Request fields to SamplingParams and limits: the checks that a type alone can't make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import HTTPConnection

from headway.errors import RequestError
from headway.sampling.params import SamplingParams
from headway.server.body import show
from headway.server.constraint import ForcedCall, Form
from headway.server.models import Named
from headway.server.modes import PACE_HEADER, TTFT_HEADER, Speed, resolve_speed
from headway.server.openai.schemas import MAX_SEED, GenerationBody


def sampling_params(ask: GenerationBody, choice: int, vocab_size: int, logprobs: int | None) -> SamplingParams:
    """For the choice-th of the n choices of a prompt."""
    return SamplingParams(
        temperature=1.0 if ask.temperature is None else ask.temperature,
        top_p=1.0 if ask.top_p is None else ask.top_p,
        top_k=max(ask.top_k or 0, 0),
        min_p=ask.min_p or 0.0,
        seed=None if ask.seed is None else _nth_seed(ask.seed, choice),
        presence_penalty=ask.presence_penalty or 0.0,
        frequency_penalty=ask.frequency_penalty or 0.0,
        repetition_penalty=1.0 if ask.repetition_penalty is None else ask.repetition_penalty,
        logit_bias=_logit_bias(ask.logit_bias or {}, vocab_size),
        logprobs=logprobs,
    )


def _nth_seed(seed: int, choice: int) -> int:
    """seed + choice, beginning again at 0 after the largest seed."""
    return seed + choice if seed + choice <= MAX_SEED else seed + choice - MAX_SEED - 1


def _logit_bias(bias: dict[str, float], vocab_size: int) -> dict[int, float]:
    ids = {}
    for key, value in bias.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < vocab_size):
            message = f"'logit_bias' has the key {show(key)}; keys must be token ids from 0 to {vocab_size - 1}."
            raise RequestError(400, message, param="logit_bias")
        ids[int(key)] = value
    return ids


def stop_strings(ask: GenerationBody) -> tuple[str, ...]:
    """Refuses the empty string, which every output would begin with."""
    if ask.stop == "":
        raise RequestError(400, "'stop' must not be an empty string.", param="stop")
    return (ask.stop,) if isinstance(ask.stop, str) else tuple(ask.stop or ())


def check_stream_options(ask: GenerationBody) -> None:
    if ask.stream_options is not None and not ask.stream:
        raise RequestError(400, "'stream_options' is only allowed when 'stream' is true.", param="stream_options")


def check_min_tokens(ask: GenerationBody, max_tokens: int) -> None:
    if (ask.min_tokens or 0) > max_tokens:
        message = f"'min_tokens' is {show(ask.min_tokens)}, more than the {max_tokens} tokens that the output may have."
        raise RequestError(400, message, param="min_tokens")


def form_of(ask: GenerationBody) -> Form | None:
    """What `response_format` holds the output to. Raises RequestError 400."""
    asked = ask.response_format
    if asked is None:
        return None
    if asked.type == "json_schema" and asked.json_schema is None:
        raise RequestError(400, "'response_format.json_schema' is missing.", param="response_format.json_schema")
    return Form(asked.type, asked.schema_asked, "response_format")


def forced_call(
    choice: Any, name_in: Callable[[dict[str, Any]], Any], example: str, parallel: bool | None
) -> ForcedCall | None:
    """What `tool_choice` forces. name_in: finds the function's name in an object that names one, such as `example`; parallel:
    as `parallel_tool_calls` has it. Raises RequestError 400."""
    if choice in (None, "none", "auto"):
        return None
    if choice == "required":
        return ForcedCall(None, parallel is not False)
    name = name_in(choice) if isinstance(choice, dict) and choice.get("type") == "function" else None
    if not isinstance(name, str):
        message = f"'tool_choice' must be none, auto, required or {example}, not {show(choice)}."
        raise RequestError(400, message, param="tool_choice")
    return ForcedCall(name, False)


def check_token_ids(ids: Sequence[int], vocab_size: int, path: str) -> None:
    wrong = next((token for token in ids if not 0 <= token < vocab_size), None)
    if wrong is not None:
        message = f"'{path}' holds {show(wrong)}; token ids go from 0 to {vocab_size - 1}."
        raise RequestError(400, message, param="prompt")


def speed_of(named: Named, ask: GenerationBody, connection: HTTPConnection) -> Speed:
    """What is asked for in the body and the headers. Raises RequestError."""
    return resolve_speed(
        named,
        tier=ask.service_tier,
        tpot_ms=connection.headers.get(PACE_HEADER),
        ttft_ms=connection.headers.get(TTFT_HEADER),
    )
