"""What the plots of a report show: their numbers and their words, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.compare.capability.chains import survives
from headway.compare.capability.figures import ALL, Cell, TargetFigures
from headway.compare.capability.result import CapabilityResult
from headway.compare.page import charts
from headway.compare.page.charts import Axes, Line, Mark, axes, percent
from headway.compare.page.svg import around
from headway.compare.stats import percentile

MAX_STEPS = 20
ITL_PARTS = 24
MILLI = 1000


@dataclass(frozen=True, slots=True)
class Plot:
    """name: of a file. missing: why there is nothing to draw; None if there is."""

    name: str
    heading: str
    caption: str
    axes: Axes
    marks: Sequence[Mark] = ()
    lines: Sequence[Line] = ()
    missing: str | None = None

    def svg(self) -> str:
        if self.marks:
            return charts.scatter(self.marks, self.axes, self.heading)
        return charts.lines(self.lines, self.axes, self.heading)


def plots(result: CapabilityResult) -> list[Plot]:
    """All plots of a report, those without anything to show among them."""
    return [_capability(result), _price(result), _survival(result), _itl(result)]


def cost_of(result: CapabilityResult, cell: Cell) -> float | None:
    """Of a right answer: its price, or device seconds where a target has no price."""
    return cell.price_per_right if result.has_prices else cell.engine_seconds_per_right


def cost_name(result: CapabilityResult) -> str:
    return f"{result.currency} per right answer" if result.has_prices else "device seconds per right answer"


def _capability(result: CapabilityResult) -> Plot:
    marks = []
    for place, target in enumerate(result.targets):
        cell, speed = target.cells[ALL], target.speed.tokens_per_second
        if cell.share is not None and speed:
            low, high = cell.share_interval or (None, None)
            marks.append(Mark(target.label, place, speed, cell.share, cost_of(result, cell), low, high))
    ends = around([mark.x for mark in marks], log=True)
    on = axes(ends, (0.0, 1.0), "tokens/s per user", "right answers", log_x=True, y_format=percent)
    caption = f"All suites together. The area of a mark is its {cost_name(result)}; the line is the 95% interval."
    missing = None if marks else "No target has both a speed and answers."
    return Plot("capability", "Speed against capability", caption, on, marks, missing=missing)


def _price(result: CapabilityResult) -> Plot:
    marks = []
    for place, target in enumerate(result.targets):
        cell = target.cells[ALL]
        cost, seconds = cost_of(result, cell), cell.seconds_per_right
        if cost and seconds:
            marks.append(Mark(target.label, place, seconds, cost))
    across, up = around([m.x for m in marks], log=True), around([m.y for m in marks], log=True)
    on = axes(across, up, "seconds per right answer", cost_name(result), log_x=True, log_y=True)
    caption = "What a right answer takes, and what it costs, if wrong ones are asked again. Down and left is better."
    missing = None if marks else "No target has a price, and no server charges device seconds."
    return Plot("price", "The price of speed", caption, on, marks, missing=missing)


def _survival(result: CapabilityResult) -> Plot:
    all_lines = []
    for place, target in enumerate(result.targets):
        chain = target.chain
        if chain is not None and chain.mistake_rate is not None:
            curve = [(float(k), survives(chain.mistake_rate, k)) for k in range(MAX_STEPS + 1)]
            seen = [(float(steps), good / count) for steps, count, good in chain.observed]
            all_lines.append(Line(target.label, place, curve, seen))
    on = axes((0.0, float(MAX_STEPS)), (0.0, 1.0), "steps", "chains survived", y_format=percent)
    caption = "Lines: (1 − p)ᵏ, with p the mistake rate of a step. Dots: the chains that were asked."
    missing = None if all_lines else "No chains were asked."
    return Plot("chains", "Chains of steps survived", caption, on, lines=all_lines, missing=missing)


def _itl(result: CapabilityResult) -> Plot:
    all_lines = []
    for place, target in enumerate(result.targets):
        curve = _itl_curve(target)
        if len(curve) > 1:
            all_lines.append(Line(target.label, place, curve))
    points = [point for line in all_lines for point in line.line]
    across = (0.0, max((x for x, _ in points), default=1.0))
    up = around([y for _, y in points], zero=True)
    on = axes(across, up, "seconds since the first token", "ITL, ms (median)")
    caption = "The gap before each chunk, by how long ago the answer began; the median of all answers."
    missing = None if all_lines else "No answer was long enough."
    return Plot("itl", "Inter-token latency over an answer's time", caption, on, lines=all_lines, missing=missing)


def _itl_curve(target: TargetFigures) -> list[tuple[float, float]]:
    """Parts of equal numbers of gaps, so that each median rests on as many."""
    gaps = sorted(target.speed.itl_times)
    if not gaps:
        return []
    size = max(1, -(-len(gaps) // ITL_PARTS))
    parts = [gaps[start : start + size] for start in range(0, len(gaps), size)]
    return [(_median([x for x, _ in part]), MILLI * _median([gap for _, gap in part])) for part in parts]


def _median(values: Sequence[float]) -> float:
    return percentile(values, 50) or 0.0
