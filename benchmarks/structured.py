"""Does what comes out always fit its schema? Made-up schemas and real prompts, at both speeds, streamed and not.

    python benchmarks/structured.py [--model smollm2] [--schemas 200] [--first 0] [--streams 32]

How to read it: `valid` answers are complete and fit their schema by another implementation of JSON Schema (the package
`jsonschema`), `cut` ones reached max_tokens and say so (`length`), `invalid` ones are what must not be. `same text` counts the
requests (a schema and a prompt; one is answered greedily, two are drawn with a seed at temperature 0.8 and 1.5) whose four
answers are the same, character by character. It ends with status 1 if anything is invalid or differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
from output import publish, right_aligned

from headway.compare.embedded import running, serve_command
from headway.compare.progress import Silent
from headway.errors import HeadwayError

WAYS = {f"{tier}, {how}": (tier, how == "stream") for tier in ("standard", "fast") for how in ("whole", "stream")}
TIERS = {"standard": "default", "fast": "fast"}
PROMPTS: list[tuple[str, dict[str, float]]] = [
    ("Give an example that fits the form.", {"temperature": 0.0}),
    ("Make up a record about a city, as JSON.", {"temperature": 0.8}),
    ("Lo que quieras, con acentos y emojis 🫠.", {"temperature": 1.5}),
]
MAX_TOKENS = 400
NAMES = [
    "name",
    "age",
    "city",
    "tags",
    "id",
    "price",
    "größe",
    "items",
    'a "quoted" key',
    "a_rather_long_property_name",
    "x",
    "名前",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first schema: a run can be made in parts")
    parser.add_argument("--streams", type=int, default=32)
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.schemas)
    with running(serve_command(arguments.model, arguments.streams)) as server:
        url = server.wait_ready(Silent())
        ends, num_same, bad = asyncio.run(ask_all(url, numbers, arguments.streams))
    title = f"{len(numbers)} schemas x {len(PROMPTS)} prompts"
    table = right_aligned(title, "speed and form", "valid", "cut", "invalid", "valid of complete")
    for way, counts in ends.items():
        complete = counts["valid"] + counts["invalid"]
        share = f"{counts['valid'] / complete:.2%}" if complete else ""
        table.add_row(way, *(str(counts[end]) for end in ("valid", "cut", "invalid")), share)
    asked = len(numbers) * len(PROMPTS)
    notes = [f"Same text in all four ways: {num_same} of {asked} requests.", *bad[:5]]
    figures = {"model": Path(arguments.model).name, "first": arguments.first, "schemas": len(numbers)}
    publish("structured", table, figures | {"ends": ends, "same_text": num_same, "asked": asked}, notes, ("llguidance",))
    if bad or num_same != asked:
        sys.exit(1)


async def ask_all(url: str, numbers: range, streams: int) -> tuple[dict[str, Counter[str]], int, list[str]]:
    """How the answers ended by way of asking, how many requests had the same text each way, and what was wrong."""
    ends: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    gate = asyncio.Semaphore(streams)
    bad: list[str] = []

    async def one(session: aiohttp.ClientSession, model: str, number: int, prompt: int) -> bool:
        schema = make_schema(random.Random(number))
        text, params = PROMPTS[prompt]
        body = {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "seed": number,
            "max_tokens": MAX_TOKENS,
            **params,
        }
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "made_up", "schema": schema}}
        texts = set()
        for way, (tier, stream) in WAYS.items():
            async with gate:
                text, reason = await answer(session, {**body, "service_tier": TIERS[tier], "stream": stream})
            texts.add(text)
            end = "cut" if reason == "length" else "valid" if fits(text, schema) else "invalid"
            ends[way][end] += 1
            if end == "invalid":
                bad.append(f"schema {number}, {way}: {text[:80]}")
        return len(texts) == 1

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(url, timeout=timeout) as session:
        async with session.get("/v1/models") as response:
            model = (await response.json())["data"][0]["id"]
        same = await asyncio.gather(*(one(session, model, n, p) for n in numbers for p in range(len(PROMPTS))))
    return ends, sum(same), bad


async def answer(session: aiohttp.ClientSession, body: dict[str, Any]) -> tuple[str, str]:
    """Text and finish_reason; asks again where there is no seat yet."""
    while True:
        async with session.post("/v1/chat/completions", json=body) as response:
            if response.status == 429:
                await asyncio.sleep(float(response.headers["retry-after-ms"]) / 1000)
                continue
            raw = await response.text()
            if response.status != 200:
                raise HeadwayError(f"the server said {response.status}: {raw[:300]}")
        if not body["stream"]:
            choice = json.loads(raw)["choices"][0]
            return choice["message"]["content"], choice["finish_reason"]
        events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: {")]
        choices = [choice for event in events for choice in event["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices), choices[-1]["finish_reason"]


def fits(text: str, schema: Any) -> bool:
    try:
        jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def make_schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """Of the kinds that people send; an object at its root, values bounded so that most answers end before they are cut."""
    kinds = ["object", "array", "anyOf", "ref", *["string", "number", "enum", "boolean"] * (1 + depth)]
    kind = "object" if depth == 0 else rng.choice(kinds)
    if kind == "object":
        names = rng.sample(NAMES, rng.randint(1, 5 - depth if depth < 4 else 1))
        properties = {name: make_schema(rng, depth + 1) for name in names}
        required = [name for name in names if rng.random() < 0.8]
        root = {"$defs": {"shared": leaf(rng)}} if depth == 0 else {}
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **root}
    if kind == "array":
        return {
            "type": "array",
            "items": make_schema(rng, depth + 1),
            "minItems": rng.randint(0, 1),
            "maxItems": rng.randint(1, 3),
        }
    if kind == "anyOf":
        return {"anyOf": [make_schema(rng, depth + 1), rng.choice([{"type": "null"}, leaf(rng)])]}
    return {"$ref": "#/$defs/shared"} if kind == "ref" else leaf(rng)


def leaf(rng: random.Random) -> dict[str, Any]:
    low = rng.randint(-50, 50)
    high = low + rng.randint(0, 100)
    return rng.choice(
        [
            {"type": "string", "minLength": rng.randint(0, 3), "maxLength": rng.randint(3, 30)},
            {"type": "string", "pattern": rng.choice(["^[A-Z]{2}-[0-9]{3}$", "^(ab|c)+d?$", r"^\d{1,5}$"]), "maxLength": 40},
            {"type": "string", "format": rng.choice(["date", "date-time", "uuid", "ipv4"])},
            {"type": rng.choice(["integer", "number"]), "minimum": low, "maximum": high},
            {"type": "integer", "minimum": 0, "maximum": 500, "multipleOf": rng.choice([2, 5])},
            {"type": ["boolean", "null"]},
            {"enum": rng.sample(["red", "blé", "🐈", 'a "b"', 1, 2.5, None, True, {"k": [1]}], rng.randint(1, 4))},
            {"const": rng.choice(["fixed", 7, "龜é🫠"])},
        ]
    )


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
