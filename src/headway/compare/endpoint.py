"""What can be asked of a server besides generating: its models, its counters, and whether it takes our requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from headway.compare.client import Client
from headway.compare.request import RequestMaker
from headway.errors import HeadwayError, UsageError
from headway.modes import ModeName

ANSWER_SECONDS = 10.0


def base_url(url: str) -> str:
    """The server's root: `http://HOST:PORT`, whether or not the user wrote the `/v1` that clients want."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(f"{url!r} is no URL of a server; write it like http://127.0.0.1:8000")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"


async def find_model(client: Client, wanted: str | None) -> str:
    """The model to ask for: the wanted one if the server lists it, else the first one listed. Raises HeadwayError if nothing
    answers there, if it is no OpenAI-compatible server, or if the model isn't served."""
    listed = [str(entry["id"]) for entry in await _listing(client)]
    if wanted is None:
        return listed[0]
    if wanted in listed:
        return wanted
    raise HeadwayError(f"{client.url} doesn't serve {wanted!r}; it serves {', '.join(listed)}")


async def find_spark(client: Client) -> str | None:
    """The model that this server serves as a spark: headway says so in the list of its models."""
    return next((str(entry["id"]) for entry in await _listing(client) if "spark" in (entry.get("pace") or {})), None)


async def find_maker(client: Client, model: str) -> RequestMaker:
    """How to word requests so that this server takes them: a short request is tried, first with `ignore_eos`, then without.
    Raises HeadwayError with the server's own words if neither works."""
    maker = RequestMaker(model)
    record = await client.send(maker.chat("Hello", ModeName.STANDARD, 2, temperature=0.0))
    if record.status in (400, 422):
        maker = replace(maker, ignore_eos=False)
        record = await client.send(maker.chat("Hello", ModeName.STANDARD, 2, temperature=0.0))
    if not record.succeeded:
        raise HeadwayError(f"{client.url} can't be measured: {record.reason}")
    return maker


async def engine_busy_seconds(client: Client) -> float | None:
    """Seconds that headway's engine has computed since its start; None where the server has no such counter."""
    return await metric(client, "headway_engine_busy_seconds_total")


async def metric(client: Client, name: str, **labels: str) -> float | None:
    """The sum of a metric's samples of this name with these labels; None where the server shows none."""
    try:
        async with client.session.get(f"{client.url}/metrics", timeout=_timeout()) as response:
            if response.status != 200:
                return None
            families = list(text_string_to_metric_families(await response.text()))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):  # the parser raises ValueError
        return None
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    values = [sample.value for sample in samples if labels.items() <= sample.labels.items()]
    return sum(values) if values else None


async def _listing(client: Client) -> list[dict[str, Any]]:
    try:
        async with client.session.get(f"{client.url}/v1/models", timeout=_timeout()) as response:
            if response.status in (401, 403):
                raise HeadwayError(f"{client.url} refuses the API key (HTTP {response.status})")
            listing = await response.json(content_type=None)
            models = [dict(entry) for entry in listing["data"] if entry["id"]]
    except (aiohttp.ClientConnectionError, TimeoutError, OSError) as error:
        raise HeadwayError(f"{client.url} does not answer; is the server running?") from error
    except (aiohttp.ClientError, ValueError, KeyError, TypeError) as error:
        raise HeadwayError(f"{client.url} is no OpenAI-compatible server: /v1/models lists no models") from error
    if not models:
        raise HeadwayError(f"{client.url} serves no model")
    return models


def _timeout() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=ANSWER_SECONDS)
