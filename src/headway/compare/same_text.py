"""Is the text the same at every speed? The proof that fast is no worse model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.compare.client import Client
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker
from headway.modes import ModeName


@dataclass(frozen=True, slots=True)
class Setting:
    """One way in which each prompt is asked."""

    mode: ModeName
    loaded: bool

    @property
    def name(self) -> str:
        return f"{self.mode} {'under load' if self.loaded else 'alone'}"


REFERENCE = Setting(ModeName.STANDARD, loaded=False)
LOADED = (Setting(ModeName.STANDARD, loaded=True), Setting(ModeName.FAST, loaded=True))


@dataclass(frozen=True, slots=True)
class Difference:
    """A prompt whose answer under `setting` isn't the one it gets at standard, alone.

    position: of the first token that differs where the server lists tokens, else of the first character.
    """

    prompt: str
    setting: str
    position: int
    unit: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class SameText:
    """same: None if no answer differs but some are missing: that proves nothing. by: "tokens" or "text". compared: pairs of
    answers that were compared; tokens: of their references; failed: why answers are missing, one line for each pair.
    """

    same: bool | None
    by: str
    compared: int
    tokens: int
    failed: tuple[str, ...]
    differences: tuple[Difference, ...]


async def ask(
    client: Client, maker: RequestMaker, prompts: Sequence[str], setting: Setting, max_tokens: int
) -> list[RequestRecord]:
    """Each prompt greedily under one setting: standard ones all at once, fast ones in turn (fast has few seats)."""

    async def one(prompt: str) -> RequestRecord:
        record = await client.send(maker.chat(prompt, setting.mode, max_tokens, temperature=0.0, logprobs=True, keep_text=True))
        if record.status in (400, 422):  # a server without logprobs
            record = await client.send(maker.chat(prompt, setting.mode, max_tokens, temperature=0.0, keep_text=True))
        return record

    if setting.loaded and setting.mode is ModeName.STANDARD:
        return await asyncio.gather(*(one(prompt) for prompt in prompts))
    return [await one(prompt) for prompt in prompts]


def judge(
    prompts: Sequence[str], reference: Sequence[RequestRecord], others: Mapping[str, Sequence[RequestRecord]]
) -> SameText:
    """Compare each prompt's answer in every setting with its reference."""
    failed: list[str] = []
    differences: list[Difference] = []
    compared = tokens = 0
    by_tokens = True
    for setting, records in others.items():
        for prompt, expected, got in zip(prompts, reference, records, strict=True):
            bad = next((record for record in (expected, got) if not record.succeeded), None)
            if bad is not None:
                failed.append(f"{setting}: {bad.reason}")
                continue
            compared += 1
            tokens += len(expected.tokens)
            by_tokens = by_tokens and bool(expected.tokens and got.tokens)
            if (difference := _difference(prompt, setting, expected, got)) is not None:
                differences.append(difference)
    same = False if differences else None if failed or not compared else True
    return SameText(same, "tokens" if by_tokens and compared else "text", compared, tokens, tuple(failed), tuple(differences))


def _difference(prompt: str, setting: str, expected: RequestRecord, got: RequestRecord) -> Difference | None:
    if expected.tokens and got.tokens:
        want: Sequence[str] = expected.tokens
        have: Sequence[str] = got.tokens
        unit = "token"
    else:
        want, have, unit = expected.text, got.text, "character"
    if want == have and expected.text == got.text:
        return None
    position = next((i for i, (a, b) in enumerate(zip(want, have, strict=False)) if a != b), min(len(want), len(have)))
    return Difference(prompt, setting, position, unit, "".join(want[position:][:8]), "".join(have[position:][:8]))
