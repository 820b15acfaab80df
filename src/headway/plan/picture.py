"""The curve as a picture: tokens/s of one user against tokens/s of all per chip, both logarithmic, in SVG (and PNG with
Matplotlib)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from headway.compare.page import svg as draw
from headway.compare.page.svg import Axis
from headway.errors import UsageError
from headway.plan.curve import Curve
from headway.plan.report import Plan, headline

WIDTH, HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 20, 52
_DASHES = (None, "6 4", "2 4", "8 3 2 3", "1 6", "10 6")

STYLE = """
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}
.grid{stroke:currentColor;opacity:.15}.split{stroke:currentColor;opacity:.45;fill:none}
.best{stroke:#0b6bcb;stroke-width:2.5;fill:none}.drafts{stroke:#b3541e;stroke-width:2.5;fill:none;stroke-dasharray:7 4}
.mode{fill:#0b6bcb}text{fill:currentColor}
@media(prefers-color-scheme:dark){.best{stroke:#6cb2ff}.mode{fill:#6cb2ff}.drafts{stroke:#f2a26b}}
"""


def svg(plan: Plan) -> str:
    """An <svg> element whose colours follow the page's."""
    lines = list(_lines(plan))
    scale = _Scale([point for _, _, points in lines for point in points])
    body = [*_axes(scale)]
    for name, style, points in lines:
        places = [scale(point) for point in points]
        body.append(draw.polyline(places, draw.title(name), class_=style.split()[0], stroke_dasharray=_dash(style)))
    for name, point in (("standard", plan.curve.standard), ("fast", plan.curve.fast)):
        if point is not None:
            x, y = scale((point.speed, point.per_chip))
            body += [draw.circle((x, y), 5.0, class_="mode"), draw.text(name, x + 9, y - 6)]
    body += _legend(lines)
    return draw.tag("svg", *body, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=headline(plan))


def write_pictures(plan: Plan, folder: Path) -> list[Path]:
    """curve.svg, and curve.png if Matplotlib is installed. Raises UsageError if the folder can't be written."""
    alone = svg(plan).replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" ', 1)
    alone = alone.replace(">", f"><style>{STYLE}</style>", 1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "curve.svg"]
        written[0].write_text(alone, "utf-8")
        if (png := _png(plan, folder / "curve.png")) is not None:
            written.append(png)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}") from None
    return written


def _lines(plan: Plan) -> Iterator[tuple[str, str, list[tuple[float, float]]]]:
    """(name, class, points) of each line: a split's batch sizes, the frontier, the frontier with drafts."""
    splits = sorted({point.layout.chips for point in plan.curve.points})
    for place, chips in enumerate(splits):
        points = [(one.speed, one.per_chip) for one in plan.curve.points if one.layout.chips == chips]
        yield f"{chips} chip{'s' if chips > 1 else ''}", f"split {place}", points
    yield "best", "best", _pairs(plan.curve)
    if plan.speculated is not None:
        yield "best with drafts", "drafts", _pairs(plan.speculated)


def _pairs(curve: Curve) -> list[tuple[float, float]]:
    return [(point.speed, point.per_chip) for point in curve.best]


def _dash(style: str) -> str | None:
    place = style.partition(" ")[2]
    return _DASHES[int(place) % len(_DASHES)] if place else None


class _Scale:
    """Values to places, both axes logarithmic from a round number to a round number."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        across, up = (_round_range([point[axis] for point in points]) for axis in (0, 1))
        self.x = Axis(*across, _LEFT, WIDTH - _RIGHT, log=True)
        self.y = Axis(*up, HEIGHT - _BOTTOM, _TOP, log=True)

    def __call__(self, point: tuple[float, float]) -> tuple[float, float]:
        return self.x(point[0]), self.y(point[1])


def _round_range(values: Sequence[float]) -> tuple[float, float]:
    """The nearest 1, 2 or 5, times a power of ten, below and above."""
    steps = sorted(log10(step) for step in (1, 2, 5, 10))
    low, high = log10(min(values)), log10(max(values))
    below = floor(low) + max(step for step in steps if step <= low - floor(low) + 1e-9)
    above = ceil(high) - 1 + min(step for step in steps if step >= high - ceil(high) + 1 - 1e-9)
    return 10**below, 10 ** (above if above > below else below + 1)


def _ticks(axis: Axis) -> list[float]:
    """1, 2 and 5 of each power of ten: the lines of a curve that is read closely."""
    low, high = log10(axis.low), log10(axis.high)
    values = [step * 10**power for power in range(floor(low), ceil(high) + 1) for step in (1, 2, 5)]
    return [value for value in values if low - 1e-9 <= log10(value) <= high + 1e-9]


def _axes(scale: _Scale) -> Iterator[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for value in _ticks(scale.x):
        x = scale.x(value)
        yield draw.line((x, _TOP), (x, bottom), class_="grid")
        yield draw.text(f"{value:g}", x, bottom + 16, text_anchor="middle")
    for value in _ticks(scale.y):
        y = scale.y(value)
        yield draw.line((_LEFT, y), (right, y), class_="grid")
        yield draw.text(f"{value:g}", _LEFT - 6, y + 4, text_anchor="end")
    middle = (_TOP + bottom) / 2
    yield draw.text("tokens/s for one user", (_LEFT + WIDTH) / 2, HEIGHT - 14, text_anchor="middle")
    yield draw.text("tokens/s per chip", 0, 0, text_anchor="middle", transform=f"translate(14 {middle}) rotate(-90)")


def _legend(lines: Sequence[tuple[str, str, Any]]) -> Iterator[str]:
    for place, (name, style, _) in enumerate(lines):
        y = HEIGHT - _BOTTOM - 12 - 16 * (len(lines) - 1 - place)
        ends = (_LEFT + 10, y), (_LEFT + 40, y)
        yield draw.line(*ends, class_=style.split()[0], stroke_dasharray=_dash(style))
        yield draw.text(name, _LEFT + 46, y + 4)


def _png(plan: Plan, path: Path) -> Path | None:
    try:
        from matplotlib.figure import Figure  # an extra of headway's, `plots`
    except ImportError:
        return None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="tokens/s for one user", ylabel="tokens/s per chip")
    for name, style, points in _lines(plan):
        strong = not style.startswith("split")
        axes.plot(*zip(*points, strict=True), label=name, linewidth=2.5 if strong else 1, linestyle="-" if strong else "--")
    for name, point in (("standard", plan.curve.standard), ("fast", plan.curve.fast)):
        if point is not None:
            axes.plot(point.speed, point.per_chip, "o", color="black")
            axes.annotate(name, (point.speed, point.per_chip), xytext=(6, 6), textcoords="offset points")
    axes.set_title(f"{plan.shape.name} on {plan.machine.name}")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=150)
    return path
