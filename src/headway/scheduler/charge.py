"""Charging: who pays for the seconds of a step.

Every token pays the same share of its step, but where some requests' pace made the step smaller than the most efficient one
on hand, a token of the others pays no more than it would have cost there; what is missing is charged to the requests that
forced it. cost_x of a mode (engine-seconds per token over standard's) falls out of this.
"""

from __future__ import annotations

from headway.scheduler.step import Step


def charge(step: Step, seconds: float) -> None:
    """Add the step's device time to `engine_seconds` of its requests; the sum of what is added is `seconds`."""
    tokens = step.num_tokens
    if not tokens:
        return
    each = seconds / tokens
    if step.forced_by:
        each = min(each, step.efficient)
        missing = (seconds - each * tokens) / len(step.forced_by)
        for request in step.forced_by:
            request.engine_seconds += missing
    for row in step.rows:
        row.request.engine_seconds += each * row.num_tokens
