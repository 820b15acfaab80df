"""The curve as a picture: tokens/s of one user against tokens/s of all per chip, both logarithmic, in SVG (and PNG with
Matplotlib)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from headway.errors import UsageError
from headway.plan.curve import Curve
from headway.plan.report import Plan, headline

WIDTH, HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 20, 52
_DASHES = ("", "6 4", "2 4", "8 3 2 3", "1 6", "10 6")

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
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (scale(point) for point in points))
        body.append(
            f'<polyline class="{style.split()[0]}" points="{path}"{_dash(style)}><title>{escape(name)}</title></polyline>'
        )
    for name, point in (("standard", plan.curve.standard), ("fast", plan.curve.fast)):
        if point is not None:
            x, y = scale((point.speed, point.per_chip))
            body.append(
                f'<circle class="mode" cx="{x:.1f}" cy="{y:.1f}" r="5"/><text x="{x + 9:.1f}" y="{y - 6:.1f}">{name}</text>'
            )
    body += _legend(lines)
    label = escape(headline(plan))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(body)}</svg>'


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


def _dash(style: str) -> str:
    place = style.partition(" ")[2]
    return f' stroke-dasharray="{_DASHES[int(place) % len(_DASHES)]}"' if place and _DASHES[int(place) % len(_DASHES)] else ""


class _Scale:
    """Values to places, both axes logarithmic from a round number to a round number."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self.x, self.y = (_round_range([point[axis] for point in points]) for axis in (0, 1))

    def __call__(self, point: tuple[float, float]) -> tuple[float, float]:
        across = (log10(point[0]) - self.x[0]) / (self.x[1] - self.x[0])
        up = (log10(point[1]) - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)


def _round_range(values: Sequence[float]) -> tuple[float, float]:
    """log10 of the nearest 1, 2 or 5 below and above."""
    steps = sorted(log10(step) for step in (1, 2, 5, 10))
    low, high = log10(min(values)), log10(max(values))
    below = floor(low) + max(step for step in steps if step <= low - floor(low) + 1e-9)
    above = ceil(high) - 1 + min(step for step in steps if step >= high - ceil(high) + 1 - 1e-9)
    return (below, above) if above > below else (below, below + 1)


def _ticks(low: float, high: float) -> list[float]:
    values = [step * 10**power for power in range(floor(low), ceil(high) + 1) for step in (1, 2, 5)]
    return [value for value in values if low - 1e-9 <= log10(value) <= high + 1e-9]


def _axes(scale: _Scale) -> Iterator[str]:
    for value in _ticks(*scale.x):
        x, _ = scale((value, 10 ** scale.y[0]))
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{HEIGHT - _BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:g}</text>'
    for value in _ticks(*scale.y):
        _, y = scale((10 ** scale.x[0], value))
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    middle = (_TOP + HEIGHT - _BOTTOM) / 2
    yield f'<text x="{(_LEFT + WIDTH) / 2}" y="{HEIGHT - 14}" text-anchor="middle">tokens/s for one user</text>'
    yield f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">tokens/s per chip</text>'


def _legend(lines: Sequence[tuple[str, str, Any]]) -> Iterator[str]:
    for place, (name, style, _) in enumerate(lines):
        y = HEIGHT - _BOTTOM - 12 - 16 * (len(lines) - 1 - place)
        yield f'<line class="{style.split()[0]}" x1="{_LEFT + 10}" y1="{y}" x2="{_LEFT + 40}" y2="{y}"{_dash(style)}/>'
        yield f'<text x="{_LEFT + 46}" y="{y + 4}">{escape(name)}</text>'


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
