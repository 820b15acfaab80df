"""What constraints cost in a step of 32 rows that all have one.

    python benchmarks/grammar.py [--model smollm2] [--rows 32] [--passes 20]

How to read it: rows write documents of five kinds, each at a place of its own, so that every kind of token comes up. `masks` is
the time per step to work out what each row may write next, and the same where each row also has the next four tokens verified;
`first pass` is when nothing has been seen yet. The loop does this while the device computes; the share is what it would cost if
nothing of it was hidden. `sampling` is choosing from plain logits and from constrained ones. `compile` is the time from a
schema to a grammar, which is taken beside the event loop.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from output import publish, right_aligned
from real_logits import Collected, collect

from headway.catalog.resolve import resolve
from headway.compare.stats import percentile
from headway.errors import HeadwayError
from headway.grammar.compiler import Compiler, Grammar
from headway.grammar.constraint import json_schema
from headway.sampling.params import SamplingParams
from headway.sampling.sampler import sample
from headway.sampling.state import SamplingState
from headway.text.tokenizer import Tokenizer

DRAFTS = 4
TEXT = {"type": "string"}


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


DOCUMENTS: dict[str, tuple[dict[str, object], object]] = {
    "person": (
        _object(name=TEXT, age={"type": "integer", "minimum": 0, "maximum": 150}, tags={"type": "array", "items": TEXT}),
        {"name": "Ada Lovelace of London", "age": 36, "tags": ["mathematics", "poetry", "the first engine"]},
    ),
    "verdict": (
        _object(sentiment={"enum": ["positive", "negative", "neutral"]}, score={"type": "number"}, reason=TEXT),
        {"sentiment": "positive", "score": 0.75, "reason": "The author clearly enjoyed the film, and says so twice."},
    ),
    "order": (
        _object(
            id={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            lines={"type": "array", "items": _object(sku=TEXT, quantity={"type": "integer"}, price={"type": "number"})},
            mail={"type": "string", "format": "email"},
        ),
        {"id": "AB-1234", "lines": [{"sku": "blue x1", "quantity": 2, "price": 9.5}] * 3, "mail": "ada@example.org"},
    ),
    "tree": (
        {**_object(v=TEXT, children={"type": "array", "items": {"$ref": "#"}})},
        {"v": "root", "children": [{"v": "a leaf", "children": []}, {"v": "b", "children": [{"v": "c", "children": []}]}]},
    ),
    "any object": (
        {"type": "object"},
        {"hello": "world and more", "numbers": [1, 2.5, None, True], "inner": {"x": "y", "z": [{}, []]}},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--passes", type=int, default=20)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.load(resolve(arguments.model).path)
    step = collect(arguments.model, arguments.rows)
    vocabulary = step.logits[0].shape[1]
    tokenizer.token_bytes.extend([b""] * (vocabulary - len(tokenizer.token_bytes)))
    compiler = Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode)
    compiler.compile(json_schema({"const": 0}))  # the vocabulary's own tables
    table = right_aligned(
        f"{arguments.rows} constrained rows, {vocabulary:,} tokens; a step takes {step.step_ms:.1f} ms",
        "what",
        "ms",
        "p99",
        "of a step",
    )
    figures: dict[str, object] = {}

    def add(name: str, times: Sequence[float], *, shared: bool = True) -> None:
        share = median(times) / step.step_ms
        figures[name] = {"median_ms": median(times), "p99_ms": percentile(times, 99), "share_of_step": share}
        table.add_row(name, f"{median(times):.3f}", f"{percentile(times, 99):.2f}", f"{share:.1%}" if shared else "")

    grammars, compiled = {}, []
    for name, (schema, _) in DOCUMENTS.items():
        begun = time.perf_counter()
        grammars[name] = compiler.compile(json_schema(schema))
        compiled.append(1000 * (time.perf_counter() - begun))
    texts = {name: tokenizer.encode(json.dumps(document)) for name, (_, document) in DOCUMENTS.items()}
    rows = [list(DOCUMENTS)[row % len(DOCUMENTS)] for row in range(arguments.rows)]
    first = masks(grammars, texts, rows, 0)
    times = [one for _ in range(arguments.passes) for one in masks(grammars, texts, rows, 0)]
    drafted = [one for _ in range(arguments.passes) for one in masks(grammars, texts, rows, DRAFTS)]
    add("masks", times)
    add(f"masks and {DRAFTS} drafts each", drafted)
    add("masks, first pass", first)
    add("sampling, plain", sampling(step, None, texts, rows, arguments.passes))
    add("sampling, constrained", sampling(step, grammars, texts, rows, arguments.passes))
    add("compile, each", compiled, shared=False)
    figures["mean_mask_us"] = 1000 * mean(times) / arguments.rows
    circumstances = {"model": Path(arguments.model).name, "rows": arguments.rows, "step_ms": round(step.step_ms, 2)}
    publish("grammar", table, circumstances | figures, [], ("llguidance",))


def masks(grammars: dict[str, Grammar], texts: dict[str, list[int]], rows: Sequence[str], num_drafts: int) -> list[float]:
    """Milliseconds of each step in which every row's masks are worked out, until the longest text is written; a row that is at
    its end begins again. Rows of a kind are as far apart as can be."""
    matchers, places = [], []
    for row, name in enumerate(rows):
        matcher = grammars[name].start()
        place = len(texts[name]) * row // len(rows)
        for token in texts[name][:place]:
            matcher.accept(token)
        matchers.append(matcher)
        places.append(place)
    times = []
    for _ in range(max(map(len, texts.values()))):
        drafts = [texts[name][place : place + num_drafts] for name, place in zip(rows, places, strict=True)]
        begun = time.perf_counter()
        for matcher, guesses in zip(matchers, drafts, strict=True):
            matcher.prepare(guesses)
        times.append(1000 * (time.perf_counter() - begun))
        for row, name in enumerate(rows):
            matchers[row].accept(texts[name][places[row]])
            places[row] += 1
            if matchers[row].finished:
                assert matchers[row].failure is None
                matchers[row], places[row] = grammars[name].start(), 0
    return times


def sampling(
    step: Collected, grammars: dict[str, Grammar] | None, texts: dict[str, list[int]], rows: Sequence[str], passes: int
) -> list[float]:
    """Milliseconds to choose a token for every row, a quarter of them greedy; of constrained rows with their masks at hand."""
    times = []
    for number in range(passes):
        states = []
        for row, name in enumerate(rows):
            params = SamplingParams(temperature=0.8 if row % 4 else 0.0, seed=row)
            matcher = grammars[name].start() if grammars is not None else None
            states.append(SamplingState(params, (), matcher=matcher))
            if matcher is not None:
                for token in texts[name][: len(texts[name]) * row // len(rows)]:
                    matcher.accept(token)
                matcher.prepare(())
        begun = time.perf_counter()
        sample(step.logits[number % len(step.logits)], states)
        times.append(1000 * (time.perf_counter() - begun))
    return times


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
