"""`headway calibrate`: the machine's memory, and a model's steps on it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from headway.calibrate import bandwidth
from headway.calibrate.caches import data_caches, usable_cores
from headway.calibrate.model import measure_model
from headway.calibrate.report import Calibration, print_report, to_json
from headway.calibrate.trial import STEPS
from headway.catalog import wheel
from headway.catalog.known import KNOWN
from headway.catalog.local import LocalModel
from headway.catalog.resolve import resolve
from headway.compare.commands import DEFAULT_MODEL
from headway.compare.progress import Bar
from headway.compare.report import STDOUT, check_json_path, write_json
from headway.config import Settings


def calibrate_command(settings: Settings, *, json_path: Path | None = None) -> None:
    """Measure, print tables, and write JSON if a path is given (`-` = stdout, and the tables to stderr; schema: `to_json`).

    The model is the settings', else smollm2 if it is on this machine; without one the memory alone is measured.
    Raises HeadwayError (one line) for whatever the user can mend, before anything is measured as far as possible.
    """
    check_json_path(json_path)
    model = _model(settings)
    cores = usable_cores()
    caches = data_caches(cores)
    sizes = bandwidth.sizes()
    with Bar(Console(stderr=True)) as bar:
        bar.plan(bandwidth.num_steps(sizes) + (STEPS if model else 0))
        bar.phase("reading memory")
        ladder = bandwidth.measure(sizes, len(cores), caches, bar.advance)
        measured = None
        if model is not None:
            measured = measure_model(model, settings, ladder, bar)
    result = Calibration(caches, ladder, measured)
    print_report(result, Console(stderr=json_path == STDOUT))
    if json_path is not None:
        write_json(to_json(result), json_path)


def _model(settings: Settings) -> LocalModel | None:
    if settings.model.name is not None:
        return resolve(settings.model.name)
    return resolve(DEFAULT_MODEL) if wheel.is_pulled(KNOWN[DEFAULT_MODEL]) else None
