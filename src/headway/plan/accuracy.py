"""How well the step model predicts measured points that its fit never saw: `make fit` fits, checks, prints and keeps it all."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from headway.errors import HeadwayError, UsageError
from headway.plan.fit import CrossValidation, Problem, cross_validate
from headway.plan.frontier import frontier, price_multiple, throughput
from headway.plan.samples import Sample, contradictory, read_samples

Floats = NDArray[np.float64]

SOURCE = (
    "fitted to silicon_sample.csv of ai-dynamo/aiconfigurator (Apache-2.0, NVIDIA and contributors; commit 095f58a), "
    "most of it from public InferenceX runs"
)
SLOW, QUICK = 40.0, 100.0
"""Tokens/s of one user between which the price multiple of 2.5x is checked."""


def main(arguments: list[str]) -> int:
    """`python -m headway.plan.accuracy CSV [OUT]`: writes the coefficients to OUT (default: those of this version)."""
    try:
        run(arguments)
    except HeadwayError as error:
        print(f"fit: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def run(arguments: list[str]) -> None:
    """Fit, cross-validate, print the tables, keep the coefficients."""
    if not arguments or not arguments[0]:
        raise UsageError("give the measured points' CSV file, as in: make fit GPU_SPEED_CSV=gpu_speed.csv")
    samples = read_samples(Path(arguments[0]))
    if len({one.group for one in samples}) < 2:
        raise UsageError(f"{arguments[0]}: points of at least two groups of model, chip and engine are needed")
    problem = Problem(samples)
    whole = problem.fit(np.arange(len(samples)))
    first = problem.fit_first(problem.first_terms(whole), np.arange(len(samples)))
    checked = cross_validate(problem)
    accuracy = summary(samples, checked)
    console = Console()
    console.print(_groups_table(samples, checked))
    for name, value in accuracy.items():
        console.print(f"{name}: {value}", highlight=False, soft_wrap=True)
    target = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).with_name("coefficients.json")
    target.write_text(json.dumps(asdict(problem.coefficients(whole, first, accuracy, SOURCE)), indent=1) + "\n")
    console.print(f"wrote {target}", highlight=False, soft_wrap=True)


def summary(samples: list[Sample], checked: CrossValidation) -> dict[str, object]:
    """Errors over all points, shares of 1. Points that contradict their series are counted, and left out of a second one."""
    tpot = np.abs(checked.tpot / np.array([one.tpot for one in samples]) - 1)
    ttft = np.abs(checked.ttft / np.array([one.ttft for one in samples]) - 1)
    seen_four = ~np.isnan(checked.calibrated)
    four = np.abs(checked.calibrated / np.array([one.tpot for one in samples]) - 1)[seen_four]
    first = np.abs(checked.first_calibrated / np.array([one.ttft for one in samples]) - 1)
    odd = contradictory(samples)
    sound = np.array([place not in odd for place in range(len(samples))])
    multiples = _multiples(samples, checked)
    near = [abs(predicted / measured - 1) <= 0.25 for measured, predicted in multiples if predicted is not None]
    return {
        "points": len(samples),
        "groups": len({one.group for one in samples}),
        "tpot_mean_error": _share(tpot.mean()),
        "tpot_median_error": _share(np.median(tpot)),
        "points_that_contradict_their_series": len(odd),
        "tpot_mean_error_without_them": _share(tpot[sound].mean()),
        "tpot_median_error_without_them": _share(np.median(tpot[sound])),
        "tpot_median_error_with_four_points_of_the_group": _share(np.median(four)),
        "ttft_median_error": _share(np.median(ttft)),
        "ttft_median_error_with_four_points_of_the_group": _share(np.median(first[seen_four])),
        "curves_from_40_to_100_tokens_s": len(multiples),
        "price_multiples_within_25_percent": _share(sum(near) / len(multiples)) if multiples else None,
    }


def _multiples(samples: list[Sample], checked: CrossValidation) -> list[tuple[float, float | None]]:
    """(measured, predicted) price multiple of each measured curve that reaches both speeds."""
    curves: dict[tuple[str, ...], list[int]] = {}
    for place, one in enumerate(samples):
        curves.setdefault(one.series, []).append(place)
    found = []
    for places in curves.values():
        measured = price_multiple(frontier(_point(samples[i], samples[i].tpot, samples[i].ttft) for i in places), SLOW, QUICK)
        if measured is not None:
            best = frontier(_point(samples[i], float(checked.tpot[i]), float(checked.ttft[i])) for i in places)
            found.append((measured, price_multiple(best, SLOW, QUICK)))
    return found


def _point(one: Sample, tpot: float, ttft: float) -> tuple[float, float]:
    return 1 / tpot, throughput(one.load.concurrency, ttft, tpot, one.load.osl, one.layout.chips)


def _groups_table(samples: list[Sample], checked: CrossValidation) -> Table:
    table = Table(
        "model", "chip", "engine", "points", "mean", "median", "after four", "TTFT median", title="Each predicted unseen"
    )
    for column in table.columns[3:]:
        column.justify = "right"
    for group in sorted({one.group for one in samples}):
        places = [place for place, one in enumerate(samples) if one.group == group]
        tpot = np.array([samples[i].tpot for i in places])
        error = np.abs(checked.tpot[places] / tpot - 1)
        four = np.abs(checked.calibrated[places] / tpot - 1)
        first = np.abs(checked.ttft[places] / np.array([samples[i].ttft for i in places]) - 1)
        after = "-" if np.isnan(four).all() else f"{np.nanmedian(four):.0%}"
        table.add_row(
            *group, str(len(places)), f"{error.mean():.0%}", f"{np.median(error):.0%}", after, f"{np.median(first):.0%}"
        )  # fmt: skip
    return table


def _share(value: float) -> float:
    return round(float(value), 4)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
