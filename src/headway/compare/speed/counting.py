"""Counting the tokens of answers whose endpoint doesn't say, with a tokenizer that the user names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway.compare.record import RequestRecord


def token_counter(model: str) -> Callable[[str], int]:
    """model: what `headway serve` takes; its tokenizer counts. Raises HeadwayError if there is no such model."""
    from headway.catalog.resolve import resolve
    from headway.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(resolve(model).path)
    return lambda text: len(tokenizer.encode(text))


def count_missing(records: Iterable[RequestRecord], count: Callable[[str], int]) -> int:
    """Fill in the output tokens of the successes whose endpoint sent none, from their joined text: tokens are counted, never
    chunks. Returns how many there were."""
    missing = [record for record in records if record.succeeded and record.output_tokens is None and record.text]
    for record in missing:
        record.output_tokens = count(record.text)
    return len(missing)
