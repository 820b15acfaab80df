"""What compose may do."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headway.scheduler.promises import HEADROOM


@dataclass(frozen=True, slots=True)
class Limits:
    """max_step_tokens: tokens in one step at most.
    advantage: how much more than their proportional share the rows with the highest pace get, since the others also move while
    such a row waits for its first token.
    efficiency_floor: share of the best tokens/s on hand that a step keeps.
    reserve, reserve_standard: credit in tokens that a row keeps, so that a step that takes longer than predicted doesn't make
    it late. A standard row gets hardly any: between prompts and the pace of rows in full batches, throughput comes first.
    lead: credit in tokens below which a row that takes turns rides before any prompt is computed. Where prompts could use all
    the time there is, such rows are held at this credit, so it has to make up for steps that take longer than predicted.
    hold: where a step for all that is waiting would take more periods than this, a first token is held until the second is
    there: a row has no credit yet, and were the next step to take half as long again as predicted, it would be late.
    shortest, longest: bounds of a step in periods (1 / pace) of its tightest rider: a row without the reserve gains on it no
    quicker, one with credit waits no longer.
    longest_alone: seconds of a step of prompts alone at the most, beyond a granule.
    min_chunk: prompt tokens that any step carries if a prompt is waiting.
    free_rows, knee: a step may grow by this share of its time for rows that a knee of the curve makes nearly free, if it
    then has this many times as many.
    granule: a step with a prompt's chunk gets a multiple of so many tokens, if it can: engines like sizes that they know.
    draft_gain: share by which drafts have to raise a step's expected tokens/s to make it larger.
    most_yield: tokens per step reckoned with at most for a row whose drafts come true.
    stay: steps over which the price of a new size is spread when drafts ask for it.
    headroom: share of the time that no promise may take.
    until: when the step should have ended for another model's sake (see sharing.py)."""

    max_step_tokens: int = 256
    advantage: float = 1.25
    efficiency_floor: float = 0.6
    reserve: float = 1.5
    reserve_standard: float = 0.1
    lead: float = 1.0
    hold: float = 0.4
    shortest: float = 0.6
    longest: float = 1.1
    longest_alone: float = 0.25
    min_chunk: int = 1
    free_rows: float = 0.01
    knee: float = 1.5
    granule: int = 32
    draft_gain: float = 0.1
    most_yield: float = 4.0
    stay: float = 3.0
    headroom: float = HEADROOM
    until: float = math.inf
