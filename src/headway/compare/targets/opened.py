"""From targets' names to targets that can be asked."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from headway.compare.client import Client
from headway.compare.endpoint import base_url, find_model, find_spark
from headway.compare.request import SERVICE_TIERS
from headway.compare.targets.anthropic_messages import AnthropicMessages
from headway.compare.targets.dialect import Dialect
from headway.compare.targets.endpoint import FAST_WORDS, EndpointTarget, Patience
from headway.compare.targets.name import TargetName
from headway.compare.targets.openai_chat import OpenAIChat
from headway.compare.targets.prices import PriceList
from headway.compare.targets.providers import ANTHROPIC, OPENAI
from headway.errors import HeadwayError, UsageError
from headway.modes import ModeName

OWN_KEY = "HEADWAY_API_KEY"
"""Of a server that is named by its URL. Providers' keys are sent to the providers alone."""

DIALECTS: Mapping[str, Dialect] = {OPENAI: OpenAIChat(), ANTHROPIC: AnthropicMessages()}


def check_keys(names: Sequence[TargetName], environment: Mapping[str, str] = os.environ) -> None:
    """Before anything is measured: raises UsageError for a provider whose key isn't in the environment."""
    for name in names:
        if name.provider is not None and not environment.get(name.provider.key_env):
            raise UsageError(f"{name.text} needs a key: put it into the environment variable {name.provider.key_env}")


@asynccontextmanager
async def opened(
    names: Sequence[TargetName],
    *,
    url: str | None = None,
    prices: PriceList | None = None,
    patience: Patience | None = None,
    environment: Mapping[str, str] = os.environ,
) -> AsyncIterator[list[EndpointTarget]]:
    """Targets in the order of their names; none has been asked anything. url: of the headway whose modes are meant. Raises
    UsageError."""
    check_keys(names, environment)
    async with AsyncExitStack() as stack:
        targets = []
        for name in names:
            at = replace(name, url=base_url(url) if url else None) if name.mode is not None else name
            client = await stack.enter_async_context(_client(at, environment))
            targets.append(_target(at, client, environment, prices, patience or Patience()))
        yield targets


def _key(name: TargetName, environment: Mapping[str, str]) -> str | None:
    return environment.get(name.provider.key_env if name.provider else OWN_KEY) or None


def _client(name: TargetName, environment: Mapping[str, str]) -> Client:
    if name.provider is not None:
        root = (environment.get(name.provider.base_url_env) or name.provider.base_url).rstrip("/")
    elif name.url is not None:
        root = name.url
    else:
        raise UsageError(f"{name.text} is a mode of a running headway: say which one with --url")
    return Client(root, headers=DIALECTS[name.dialect].headers(_key(name, environment), name.variant))


def _target(
    name: TargetName, client: Client, environment: Mapping[str, str], prices: PriceList | None, patience: Patience
) -> EndpointTarget:
    variant, mode = name.variant, ModeName.STANDARD
    if name.mode is not None:
        mode, variant = name.mode, SERVICE_TIERS[name.mode]
    if variant in FAST_WORDS:
        mode = ModeName.FAST
    return EndpointTarget(
        label=name.text,
        client=client,
        dialect=DIALECTS[name.dialect],
        path=name.path,
        model=name.model,
        variant=variant,
        mode=mode,
        price=prices.of_target(name) if prices else None,
        patience=patience,
        secret=_key(name, environment),
        find_model=partial(_served_model, client, mode),
        left_out=set() if name.provider is None else _left_out(name.provider.takes_max_tokens),
    )


def _left_out(takes_max_tokens: bool) -> set[str]:
    """A provider's models end when they are done; `ignore_eos` is not even tried."""
    return {"ignore_eos"} if takes_max_tokens else {"ignore_eos", "max_tokens"}


async def _served_model(client: Client, mode: ModeName) -> str:
    if mode is not ModeName.SPARK:
        return await find_model(client, None)
    spark = await find_spark(client)
    if spark is None:
        raise HeadwayError(f"{client.url} serves no spark")
    return spark
