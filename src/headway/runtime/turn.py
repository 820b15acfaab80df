"""A planned step, as the engine and the metrics take it."""

from __future__ import annotations

from collections.abc import Sequence

from headway.engines.base import BatchRow, Engine
from headway.runtime.live import Live
from headway.scheduler.step import Row, Step


def begin(engine: Engine, step: Step) -> None:
    """Make the step's copies and start it."""
    for copy in step.copies:
        engine.copy(copy.source, copy.destination, copy.num_tokens)
    engine.start([_batch_row(row) for row in step.rows], step.size)


def look_ahead(step: Step, lives: Sequence[Live]) -> None:
    """Work out what constraints allow at the places that the step samples."""
    for row, live in zip(step.rows, lives, strict=True):
        if row.samples and live.sampling.matcher is not None:
            live.sampling.matcher.prepare(row.request.drafts[: row.num_drafts])


def rows_by_mode(step: Step) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in step.rows:
        counts[row.request.mode] = counts.get(row.request.mode, 0) + 1
    return counts


def _batch_row(row: Row) -> BatchRow:
    request, start = row.request, row.request.num_computed
    tokens = request.tokens[start : start + row.num_tokens - row.num_drafts] + request.drafts[: row.num_drafts]
    return BatchRow(tokens, start, request.blocks, row.num_samples)
