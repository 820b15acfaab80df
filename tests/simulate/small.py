"""A small made-up machine and its traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway.modes import Mode, ModeName, Modes
from headway.scheduler.blocks import BlockPool
from headway.scheduler.compose import compose
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.scheduler import Composer, Scheduler
from headway.scheduler.sizes import ANY_SIZE, Grid
from headway.simulate.leap import Steady, same_pace
from headway.simulate.run import Simulation
from headway.simulate.trace import Arrival

CURVE = [(1, 0.010), (4, 0.011), (8, 0.0135), (16, 0.0185), (32, 0.0265), (64, 0.045), (128, 0.080), (256, 0.150)]
FAST, STANDARD = ModeName.FAST, ModeName.STANDARD


def costs(*, padded: bool = False, slower: float = 1.0) -> CostModel:
    """padded: steps have sizes of a grid, and a change of size takes time."""
    curve = [(tokens, slower * seconds) for tokens, seconds in CURVE]
    grid = Grid(((64, 4), (4096, 16))) if padded else ANY_SIZE
    return CostModel(curve, 0.9e-6, 1e-5, per_change=0.0045 if padded else 0.0, grid=grid)


def modes(*, seats: int = 8, fast_seats: int = 2, waiting: int = 1000, fast_waiting: int = 0) -> Modes:
    return Modes(Mode(STANDARD, 13.0, seats, waiting, 2.0), Mode(FAST, 32.5, fast_seats, fast_waiting, 0.3))


def simulation(
    *,
    machine: CostModel | None = None,
    known: CostModel | None = None,
    num_blocks: int = 2000,
    block_size: int = 16,
    speculation: bool = False,
    composer: Composer = compose,
    steady: Steady | None = same_pace,
    noise: float = 0.0,
    acceptance: float | None = None,
    slower: Callable[[float], float] | None = None,
    downgrade: bool = True,
    **seats: int,
) -> Simulation:
    """known: what the scheduler takes the machine for."""
    of = modes(**seats)
    pool = BlockPool(num_blocks, block_size)
    scheduler = Scheduler(of, pool, known or costs(), Limits(), speculation=speculation, composer=composer)
    return Simulation(
        scheduler,
        of,
        machine or costs(),
        noise=noise,
        slower=slower,
        acceptance=acceptance,
        downgrade=downgrade,
        steady=steady,
        seed=3,
    )


def standard(*at: float, prompt: int = 40, output: int = 20) -> Iterable[Arrival]:
    return [Arrival(t, prompt, output, STANDARD) for t in at]
