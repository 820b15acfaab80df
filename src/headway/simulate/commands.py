"""`headway simulate`: a day of traffic in seconds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from headway.compare.machine import versions
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, write_json
from headway.config import Settings
from headway.errors import UsageError
from headway.modes import ModeName, Modes
from headway.runtime.paces import limits_from, modes_from
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.scheduler import Scheduler
from headway.simulate.machine import MAX_NOISE, Machine, machine_in, machine_of, machine_of_recording
from headway.simulate.report import print_report
from headway.simulate.result import SimulationResult
from headway.simulate.run import Simulation
from headway.simulate.traffic import Traffic

DEFAULT_MODEL = "smollm2"
MAX_BLOCKS = 100_000_000


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """model or costs: where the step times come from; with neither from the trace, if that is a recording, else from the
    settings' model or DEFAULT_MODEL. kv_blocks, noise: None = the machine's own. acceptance, downgrade: see Simulation;
    acceptance None = as the recording tells, without one no speculation."""

    model: str | None = None
    costs: Path | None = None
    kv_blocks: int | None = None
    noise: float | None = None
    acceptance: float | None = None
    downgrade: bool = True
    seed: int = 0

    def check(self) -> None:
        if self.model is not None and self.costs is not None:
            raise UsageError("--model or --costs, not both")
        if self.kv_blocks is not None and not 1 <= self.kv_blocks <= MAX_BLOCKS:
            raise UsageError(f"--kv-blocks is {self.kv_blocks}; it should be from 1 to {MAX_BLOCKS:,}")
        if self.noise is not None and not 0 <= self.noise <= MAX_NOISE:
            raise UsageError(f"--noise is {self.noise:g}; it should be from 0 to {MAX_NOISE:g}")
        if self.acceptance is not None and not 0 <= self.acceptance <= 1:
            raise UsageError(f"--acceptance is {self.acceptance:g}; it should be from 0 to 1")


def simulate_command(traffic: Traffic, options: SimulateOptions, settings: Settings, json_path: Path | None = None) -> None:
    """Simulate, print a table, and write JSON if a path is given (`-` = stdout, and the table to stderr).
    Raises HeadwayError (one line) for whatever the user can mend."""
    options.check()
    if json_path is not None and json_path != STDOUT and not json_path.parent.is_dir():
        raise UsageError(f"--json: the folder {json_path.parent} doesn't exist")
    arrivals, number, speculates = traffic.arrivals(options.seed)
    machine = _machine(traffic, options, settings)
    settings = settings.with_overrides({f"modes.{name}.pace": pace for name, pace in _promised(machine, settings).items()})
    modes = modes_from(machine.costs, settings.scheduler, settings.modes)
    simulation = _simulation(machine, modes, settings, options, speculates)
    with _no_collector():
        if json_path is None:
            with Bar(Console(stderr=True)) as bar:
                bar.plan(number)
                bar.phase(f"simulating {number:,} requests")
                result = simulation.run(arrivals, _counter(bar))
        else:
            result = simulation.run(arrivals)
    print_report(result, _about(machine, modes), Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(_to_json(result, machine, traffic, options, settings), json_path)


def _machine(traffic: Traffic, options: SimulateOptions, settings: Settings) -> Machine:
    """The one that is named, else the one that the trace was recorded on, else the settings' model."""
    machine = None
    if options.costs is not None:
        machine = machine_in(options.costs)
    elif options.model is None and traffic.trace is not None:
        machine = machine_of_recording(traffic.trace)
    if machine is None:
        machine = machine_of(options.model or settings.model.name or DEFAULT_MODEL)
    if options.kv_blocks is not None:
        machine = replace(machine, num_blocks=options.kv_blocks)
    return machine if options.noise is None else replace(machine, noise=options.noise, slower=())


def _promised(machine: Machine, settings: Settings) -> dict[str, float]:
    """The machine's own paces, where the settings have none."""
    given = {ModeName.STANDARD: settings.modes.standard.pace, ModeName.FAST: settings.modes.fast.pace}
    return {name: pace for name, pace in machine.paces.items() if given[name] is None}


def _simulation(
    machine: Machine, modes: Modes, settings: Settings, options: SimulateOptions, speculates: bool = False
) -> Simulation:
    scheduler = Scheduler(
        modes,
        BlockPool(machine.num_blocks, machine.block_size),
        CostModel.from_dict(machine.costs.to_dict()),  # the scheduler's own: it learns, the machine stays as it is
        limits_from(settings.scheduler),
        speculation=speculates or options.acceptance is not None,
    )
    return Simulation(
        scheduler,
        modes,
        machine.costs,
        noise=machine.noise,
        slower=machine.slower_at if machine.slower else None,
        acceptance=options.acceptance,
        seed=options.seed,
        downgrade=options.downgrade,
    )


@contextmanager
def _no_collector() -> Iterator[None]:
    """Without Python's search for circles of objects: a simulation makes none, and it would look at every request's tokens
    again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _counter(bar: Bar) -> Callable[[int], None]:
    """Tells the bar how many more there are."""
    told = 0

    def tell(arrived: int) -> None:
        nonlocal told
        bar.advance(arrived - told)
        told = arrived

    return tell


def _about(machine: Machine, modes: Modes) -> list[str]:
    paces = ", ".join(f"{mode.name} {mode.pace:.4g} tokens/s on {mode.max_rows} seats" for mode in modes)
    noise = f", with noise of {machine.noise:.0%}" if machine.noise else ""
    noise += ", slower and faster by the second as recorded" if machine.slower else ""
    return [
        f"Promised: {paces}",
        f"Step times: {machine.about}{noise}; KV cache {machine.num_blocks * machine.block_size:,} tokens",
    ]


def _to_json(
    result: SimulationResult, machine: Machine, traffic: Traffic, options: SimulateOptions, settings: Settings
) -> dict[str, Any]:
    """The figures, and all that they depend on. A report names no folder of its author."""
    given = {name: value.name if isinstance(value, Path) else value for name, value in asdict(traffic).items()}
    return {
        "versions": versions(("headway",)),
        "traffic": given,
        "options": {
            "noise": machine.noise,
            "acceptance": options.acceptance,
            "downgrade": options.downgrade,
            "seed": options.seed,
        },
        "settings": settings.model_dump(mode="json", include={"scheduler", "modes"}),
        "machine": {
            "about": machine.about,
            "num_blocks": machine.num_blocks,
            "block_size": machine.block_size,
            **machine.costs.to_dict(),
        },
        **result.to_dict(),
    }
