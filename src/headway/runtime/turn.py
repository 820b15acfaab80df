"""A planned step, as the engine and the metrics take it."""

from __future__ import annotations

from headway.engines.base import BatchRow, Engine
from headway.scheduler.step import Row, Step


def begin(engine: Engine, step: Step) -> None:
    """Make the step's copies and start it."""
    for copy in step.copies:
        engine.copy(copy.source, copy.destination, copy.num_tokens)
    engine.start([_batch_row(row) for row in step.rows], step.size)


def rows_by_mode(step: Step) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in step.rows:
        counts[row.request.mode] = counts.get(row.request.mode, 0) + 1
    return counts


def _batch_row(row: Row) -> BatchRow:
    request, start = row.request, row.request.num_computed
    tokens = request.tokens[start : start + row.num_tokens - row.num_drafts] + request.drafts[: row.num_drafts]
    return BatchRow(tokens, start, request.blocks, row.num_samples)
