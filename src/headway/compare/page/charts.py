"""The plots of a report, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headway.compare.page import svg
from headway.compare.page.svg import Axis

WIDTH, HEIGHT = 360, 260
LEFT, RIGHT, TOP, BOTTOM = 66.0, 14.0, 14.0, 42.0
MIN_RADIUS, MAX_RADIUS = 5.0, 20.0
DASHES = (None, "7 4", "2 4", "9 3 2 3")


@dataclass(frozen=True, slots=True)
class Mark:
    """A target in a chart. place: of its colour. size: what the area of its mark stands for; None = unknown. low, high:
    of y."""

    label: str
    place: int
    x: float
    y: float
    size: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """points: observed ones that are marked beside the line."""

    label: str
    place: int
    line: Sequence[svg.Point]
    points: Sequence[svg.Point] = ()


@dataclass(frozen=True, slots=True)
class Axes:
    x: Axis
    y: Axis
    x_name: str
    y_name: str
    x_format: Callable[[float], str] = lambda value: f"{value:g}"
    y_format: Callable[[float], str] = lambda value: f"{value:g}"


def axes(
    x: tuple[float, float],
    y: tuple[float, float],
    x_name: str,
    y_name: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    x_format: Callable[[float], str] = lambda value: f"{value:g}",
    y_format: Callable[[float], str] = lambda value: f"{value:g}",
) -> Axes:
    """Axes of the usual drawing; x and y: their ends."""
    across = Axis(*x, LEFT, WIDTH - RIGHT, log=log_x)
    up = Axis(*y, HEIGHT - BOTTOM, TOP, log=log_y)
    return Axes(across, up, x_name, y_name, x_format, y_format)


def percent(value: float) -> str:
    return f"{value:.0%}"


def scatter(marks: Sequence[Mark], on: Axes, name: str) -> str:
    """A mark for each target, with its interval as a line."""
    largest = max((mark.size for mark in marks if mark.size), default=None)
    drawn = []
    for mark in marks:
        at = on.x(mark.x), on.y(mark.y)
        said = f"{mark.label}: {on.x_name} {on.x_format(mark.x)}, {on.y_name} {on.y_format(mark.y)}"
        if mark.low is not None and mark.high is not None:
            drawn.append(svg.line((at[0], on.y(mark.low)), (at[0], on.y(mark.high)), class_=f"line c{mark.place}"))
        drawn.append(svg.circle(at, _radius(mark.size, largest), svg.title(said), class_=f"mark c{mark.place}"))
    drawn += _labels([(mark.label, mark.place, on.x(mark.x), on.y(mark.y)) for mark in marks])
    return _drawing(on, drawn, name)


def lines(all_lines: Sequence[Line], on: Axes, name: str) -> str:
    """A line for each target, each with dashes of its own, so that they can be told apart without colours."""
    drawn = []
    for one in all_lines:
        places = [(on.x(x), on.y(y)) for x, y in one.line]
        dash = DASHES[one.place % len(DASHES)]
        drawn.append(svg.polyline(places, class_=f"line c{one.place}", stroke_dasharray=dash))
        for x, y in one.points:
            said = f"{one.label}: {on.x_name} {on.x_format(x)}, {on.y_name} {on.y_format(y)}"
            drawn.append(svg.circle((on.x(x), on.y(y)), 4.0, svg.title(said), class_=f"mark c{one.place}"))
    ends = [(one.label, one.place, on.x(one.line[-1][0]), on.y(one.line[-1][1])) for one in all_lines if one.line]
    return _drawing(on, [*drawn, *_labels(ends)], name)


def _radius(size: float | None, largest: float | None) -> float:
    if not size or not largest:
        return MIN_RADIUS
    return max(MIN_RADIUS, MAX_RADIUS * math.sqrt(size / largest))


def _labels(ends: Sequence[tuple[str, int, float, float]]) -> list[str]:
    """Names beside marks: to whichever side there is room, moved down where two would touch."""
    drawn: list[str] = []
    taken: list[float] = []
    for label, place, x, y in sorted(ends, key=lambda end: end[3]):
        short = label if len(label) <= 22 else f"{label[:21]}…"
        right = x < LEFT + (WIDTH - LEFT - RIGHT) / 2
        at = max(TOP + 8, y - 9)
        while any(abs(at - other) < 13 for other in taken):
            at += 13
        taken.append(at)
        anchor = "start" if right else "end"
        drawn.append(svg.text(short, x + (8 if right else -8), at, class_=f"name t{place}", text_anchor=anchor))
    return drawn


def _drawing(on: Axes, drawn: Sequence[str], name: str) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    grid = []
    for value in on.x.ticks:
        grid.append(svg.line((on.x(value), TOP), (on.x(value), bottom), class_="grid"))
        grid.append(svg.text(on.x_format(value), on.x(value), bottom + 15, class_="tick", text_anchor="middle"))
    for value in on.y.ticks:
        grid.append(svg.line((LEFT, on.y(value)), (right, on.y(value)), class_="grid"))
        grid.append(svg.text(on.y_format(value), LEFT - 6, on.y(value) + 4, class_="tick", text_anchor="end"))
    names = [
        svg.text(on.x_name, (LEFT + right) / 2, HEIGHT - 8.0, class_="axis", text_anchor="middle"),
        svg.text(
            on.y_name,
            12.0,
            (TOP + bottom) / 2,
            class_="axis",
            text_anchor="middle",
            transform=f"rotate(-90 12 {(TOP + bottom) / 2})",
        ),
    ]
    view = f"0 0 {WIDTH} {HEIGHT}"
    return svg.tag("svg", svg.title(name), *grid, *names, *drawn, viewBox=view, role="img", xmlns="http://www.w3.org/2000/svg")
