"""From a model on disk to its answers on disk: made once, used by every training."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headway.catalog.local import LocalModel
from headway.compare.progress import Bar
from headway.config import Settings
from headway.distill.answers import Answers, AnswerStore
from headway.distill.collect import ROW_TOKENS, ROWS, Collector
from headway.distill.dialogue import Dialogue
from headway.distill.known import Keep
from headway.distill.prompts import Prompts
from headway.distill.stopping import Stop, stoppable
from headway.engines import open_engine
from headway.engines.graph import Ends, read_ends
from headway.errors import UsageError
from headway.runtime.opened import graph_folder
from headway.runtime.texts import load_texts, match_vocabulary

HELD_OUT_TOKENS = 160
"""Of an answer to a prompt that is held out."""
SPARE_BYTES = 300e6
"""Room on disk beyond the answers, for checkpoints and the head."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model that is learned from. ends: its embeddings and output matrix. keep: what is kept of it at each token."""

    model: LocalModel
    folder: Path
    ends: Ends
    keep: Keep


@dataclass(frozen=True, slots=True)
class Gathered:
    answers: Answers
    num_answers: int
    held_out: Answers


class Stopped(Exception):
    """The user ended it; what was done is saved. number: of the signal. reached: how far it came."""

    def __init__(self, number: int, reached: str) -> None:
        super().__init__(reached)
        self.number = number
        self.reached = reached


def open_source(model: LocalModel, settings: Settings, bar: Bar, kept: Callable[[Ends, int], Keep]) -> Source:
    """kept: what to keep of a model with these ends and so many layers. Raises ModelError for a model whose layers and ends
    can't be told, UsageError as graph_folder."""
    folder = graph_folder(model, settings, bar.phase)
    bar.phase("reading the model")
    ends, num_layers = read_ends(folder)
    return Source(model, folder, ends, kept(ends, num_layers))


def gather(source: Source, settings: Settings, prompts: Prompts, tokens: int, work: Path, bar: Bar) -> Gathered:
    """So many tokens of answers at least, and answers to the prompts held out; what is in `work` already is used. Raises
    Stopped, UsageError, ModelError and OSError."""
    facts = {
        "model": source.model.sha256,
        "graph": source.folder.name,
        **source.keep.facts,
        "prompts": prompts.name,
    }
    store = AnswerStore(work / "answers", facts)
    held_out = AnswerStore(work / "held-out", facts)
    if store.num_tokens < tokens or not len(held_out):
        _check_room(work, (tokens - store.num_tokens) * source.keep.bytes_per_token)
        _fill(source, settings, prompts, tokens, store, held_out, bar)
    return Gathered(store.load(), len(store), held_out.load())


def _check_room(work: Path, needed: float) -> None:
    free, needed = shutil.disk_usage(work).free, needed + SPARE_BYTES
    if free < needed:
        raise UsageError(
            f"{work} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB are needed: give another --work, or fewer --tokens"
        )


def _fill(
    source: Source, settings: Settings, prompts: Prompts, tokens: int, store: AnswerStore, held_out: AnswerStore, bar: Bar
) -> None:
    tokenizer, template = load_texts(source.model, settings)
    bar.phase("loading the model")
    context = source.model.context_length
    engine = open_engine(source.folder, settings.engine, context, ROWS * ROW_TOKENS, taps=source.keep.taps)
    try:
        match_vocabulary(tokenizer, engine.info.vocab_size)
        collector = Collector(engine, Dialogue(tokenizer, template), source.keep)
        with stoppable() as stop:
            if not len(held_out):
                _hold_out(collector, prompts, held_out, bar, stop)
            _answer(collector, prompts, tokens, store, bar, stop)
    finally:
        engine.close()


def _hold_out(collector: Collector, prompts: Prompts, store: AnswerStore, bar: Bar, stop: Stop) -> None:
    total = len(prompts.held_out)
    bar.stage("answering what is held out", total)
    for ended in collector.held_out(prompts, HELD_OUT_TOKENS):
        if stop.wanted:
            raise Stopped(stop.wanted, "before any answers were kept")
        for answer in ended:
            store.add(answer)
        bar.reach(len(store), f"{len(store)} of {total} answers")
    if not len(store):
        raise UsageError("the model has no answers to the prompts held out, or far too short ones: it can't be learned from")
    store.flush()


def _answer(collector: Collector, prompts: Prompts, tokens: int, store: AnswerStore, bar: Bar, stop: Stop) -> None:
    had, begun = store.num_tokens, time.monotonic()
    bar.stage("collecting answers", tokens, had)
    answered = set(store.numbers)
    for ended in collector.answers(prompts, (n for n in itertools.count() if n not in answered)):
        for answer in ended:
            store.add(answer)
        if store.num_tokens >= tokens or stop.wanted:
            break
        rate = (store.num_tokens - had) / (time.monotonic() - begun)
        bar.reach(store.num_tokens, f"{store.num_tokens:,} of {tokens:,} tokens, {rate:.0f} tokens/s")
    store.flush()
    if stop.wanted and store.num_tokens < tokens:
        raise Stopped(stop.wanted, f"with {store.num_tokens:,} of {tokens:,} tokens of answers")
