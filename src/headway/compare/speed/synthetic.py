"""Made-up prompts of a given length in tokens, for endpoints whose tokenizer is their own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from headway.compare.target import Ask
from headway.compare.targets.endpoint import EndpointTarget
from headway.simulate.trace import Arrival

_WORDS = (
    "time year people way day man thing woman life child world school state family student group country problem hand part "
    "place case week company system program question work government number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father power hour "
    "game line end member law car city community name president team minute idea kid body information back parent face others "
    "level office door health person art war history party result change morning reason research girl guy moment air teacher "
    "force education foot boy age policy music market sense nation plan college interest death experience effect use class "
    "control field development role effort rate heart drug show leader light voice wife police mind price report decision son "
    "view town road drive arm difference value building action model season society tax director position player record paper "
    "space ground form event official matter center couple site project activity star table need court oil situation cost "
    "industry figure street image phone data picture practice piece land product doctor wall patient worker news test movie"
)
WORDS = _WORDS.split()
"""Common words, each a token of its own (with the space before it) in nearly every tokenizer."""

_FEW, _MANY = 16, 144


@dataclass(frozen=True, slots=True)
class Scale:
    """How an endpoint counts: a prompt of n words is `overhead + per_word * n` tokens, its chat template included."""

    overhead: float = 0.0
    per_word: float = 1.0

    def words(self, tokens: int) -> int:
        """So many words make a prompt of so many tokens; one at least."""
        return max(1, round((tokens - self.overhead) / self.per_word))


async def measured_scale(target: EndpointTarget, seed: int) -> Scale | None:
    """By the endpoint's own usage of two short prompts; None if it sends none."""
    counts = []
    for words in (_FEW, _MANY):
        answer = await target.ask(Ask(_messages(_drawn(random.Random(f"scale {seed} {words}"), words)), 1))
        counts.append(answer.record.prompt_tokens)
    few, many = counts
    if few is None or many is None or many <= few:
        return None
    per_word = (many - few) / (_MANY - _FEW)
    return Scale(few - per_word * _FEW, per_word)


def prompt(number: int, tokens: int, scale: Scale, seed: int) -> list[dict[str, str]]:
    """One user turn; nothing that it shares with those of other numbers, so that no prefix cache spares its prefill."""
    return _messages(_drawn(random.Random(f"prompt {seed} {number}"), scale.words(tokens)))


def prompt_of(arrival: Arrival, number: int, scale: Scale, seed: int) -> list[dict[str, str]]:
    """Of a trace's request: blocks with the same ids in the same places are the same words."""
    words = scale.words(arrival.prompt_tokens)
    shared: list[str] = []
    in_block = max(1, round(arrival.prefix_tokens / scale.per_word))
    for block in arrival.prefix:
        if len(shared) >= words:
            break
        shared += _drawn(random.Random(f"block {seed} {block}"), in_block)
    rest = max(0, words - len(shared))
    return _messages(shared[:words] + _drawn(random.Random(f"prompt {seed} {number}"), rest))


def _drawn(randomness: random.Random, words: int) -> list[str]:
    return randomness.choices(WORDS, k=words)


def _messages(words: Sequence[str]) -> list[dict[str, str]]:
    return [{"role": "user", "content": " ".join(words)}]
