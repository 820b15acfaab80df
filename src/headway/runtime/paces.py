"""Which paces this machine can promise, from its measured step times, and the limits of its steps."""

from __future__ import annotations

from headway.config import ModesSettings, SchedulerSettings
from headway.errors import UsageError
from headway.modes import Mode, ModeName, Modes
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.promises import Paced, Promises

CONTEXT = 512
"""Tokens of context per row that the promised paces reckon with."""


def modes_from(costs: CostModel, scheduler: SchedulerSettings, modes: ModesSettings, available: float = 1.0) -> Modes:
    """The modes of a model that has this share of the device's time, with the paces that are set, else those that the machine
    can keep: standard's is what a full house gives, fast's is `speedup` times standard's. Fast seats are as many as could be
    promised if nobody else were there; whether one more can be promised at the moment is seen when it comes. Raises UsageError
    if set paces contradict each other."""
    standard = modes.standard.pace or available * full_house(costs, scheduler, modes.fast.speedup)
    fast = modes.fast.pace or modes.fast.speedup * standard
    if fast <= standard:
        raise UsageError(f"the pace of fast ({fast:.4g} tokens/s) must be higher than standard's ({standard:.4g})")
    alone = max(1, _promises(costs, scheduler).most(Paced(fast, CONTEXT)))
    seats = min(alone, scheduler.max_fast_rows or alone)
    return Modes(
        Mode(ModeName.STANDARD, standard, scheduler.max_rows, modes.standard.max_waiting, modes.standard.ttft_ms / 1000),
        Mode(ModeName.FAST, fast, seats, modes.fast.max_waiting, modes.fast.ttft_ms / 1000),
    )


def modes_of_spark(costs: CostModel, scheduler: SchedulerSettings, modes: ModesSettings, standard: float) -> Modes:
    """The one mode of a spark beside a model that promises `standard` tokens/s. Its seats are as many as could be promised if
    nobody were on the device but they."""
    pace = modes.spark.pace or modes.spark.speedup * standard
    seats = max(1, min(_promises(costs, scheduler).most(Paced(pace, CONTEXT)), modes.spark.max_rows))
    return Modes(Mode(ModeName.SPARK, pace, seats, modes.spark.max_waiting, modes.spark.ttft_ms / 1000))


def beside_full_house(costs: CostModel, scheduler: SchedulerSettings, modes: Modes) -> int:
    """How many fast requests can be promised their pace while every standard seat is taken."""
    fast = modes[ModeName.FAST]
    standard = [Paced(modes.base.pace, CONTEXT)] * modes.base.max_rows
    most = _promises(costs, scheduler).most(Paced(fast.pace, CONTEXT), standard)
    return min(most, fast.max_rows)


def _promises(costs: CostModel, scheduler: SchedulerSettings) -> Promises:
    """As the scheduler's own."""
    limits = limits_from(scheduler)
    return Promises(costs, limits.max_step_tokens, limits.headroom)


def limits_from(scheduler: SchedulerSettings) -> Limits:
    """What compose may do. Every seat finds room in a step."""
    max_step_tokens = max(scheduler.max_step_tokens, num_seats(scheduler))
    return Limits(max_step_tokens=max_step_tokens, efficiency_floor=scheduler.efficiency_floor)


def num_seats(scheduler: SchedulerSettings) -> int:
    """Of both modes, in the full house that the paces are made for."""
    return scheduler.max_rows + scheduler.fast_rows


def full_house(costs: CostModel, scheduler: SchedulerSettings, speedup: float) -> float:
    """Standard's pace in tokens/s with every standard seat taken and `fast_rows` fast requests beside them, less the margin:
    fast rows ride in every step and the standard rows share the other places in turn, so a step of max_rows / speedup +
    fast_rows rows has to be done in one period of fast."""
    rows = max(1, round(scheduler.max_rows / speedup + scheduler.fast_rows))
    return (1.0 - scheduler.margin) / (speedup * costs.seconds(rows, rows * CONTEXT, rows))
