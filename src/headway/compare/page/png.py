"""The plots as PNG files, by matplotlib, which the extra `headway[plots]` brings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from headway.compare.capability.result import CapabilityResult
from headway.compare.page.charts import DASHES
from headway.compare.page.plots import Plot, plots
from headway.errors import UsageError

INCHES, DPI = (6.4, 4.6), 160
SMALLEST, LARGEST = 40.0, 900.0
"""Areas of marks, in square points."""


def check_plots() -> None:
    """Before anything is asked: raises UsageError if matplotlib isn't installed."""
    try:
        import matplotlib  # noqa: F401  only whether it is there
    except ImportError:
        raise UsageError("--plots needs matplotlib: pip install 'headway[plots]'") from None


def write_plots(result: CapabilityResult, folder: Path) -> list[Path]:
    """One file for each plot that has something to show; the folder is made if it isn't there. Raises UsageError."""
    check_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for plot in plots(result):
            if plot.missing is None:
                figure = Figure(figsize=INCHES, dpi=DPI, layout="constrained")
                FigureCanvasAgg(figure)
                _draw(plot, figure.add_subplot())
                paths.append(folder / f"{plot.name}.png")
                figure.savefig(paths[-1])
    except OSError as error:
        raise UsageError(f"--plots: {folder} can't be written: {error.strerror or error}") from error
    return paths


def _draw(plot: Plot, axes: Any) -> None:
    largest = max((mark.size for mark in plot.marks if mark.size), default=0.0)
    for mark in plot.marks:
        area = max(SMALLEST, LARGEST * mark.size / largest) if mark.size and largest else SMALLEST
        colour = f"C{mark.place}"
        axes.scatter([mark.x], [mark.y], s=area, alpha=0.5, color=colour, label=_plain(mark.label))
        if mark.low is not None and mark.high is not None:
            axes.plot([mark.x, mark.x], [mark.low, mark.high], color=colour)
    for line in plot.lines:
        colour, dash = f"C{line.place}", DASHES[line.place % len(DASHES)]
        style: Any = "-" if dash is None else (0, [float(part) for part in dash.split()])
        axes.plot(*zip(*line.line, strict=True), linestyle=style, color=colour, label=_plain(line.label))
        if line.points:
            axes.scatter(*zip(*line.points, strict=True), color=colour, s=25)
    on = plot.axes
    for axis, scale in ((on.x, axes.set_xscale), (on.y, axes.set_yscale)):
        if axis.log:
            scale("log")
    axes.set_xlim(on.x.low, on.x.high)
    axes.set_ylim(on.y.low, on.y.high)
    for ticks, values, shown in ((axes.set_xticks, on.x.ticks, on.x_format), (axes.set_yticks, on.y.ticks, on.y_format)):
        ticks([value for value in values if math.isfinite(value)], [shown(value) for value in values])
    axes.minorticks_off()
    axes.set(title=plot.heading, xlabel=on.x_name, ylabel=on.y_name)
    axes.grid(alpha=0.3)
    axes.legend(markerscale=0.4)


def _plain(text: str) -> str:
    """A label as it is: matplotlib would take dollar signs for mathematics, and leave out what begins with an underscore."""
    return " " + text.replace("$", r"\$")
