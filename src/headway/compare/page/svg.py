"""Drawing: marks of SVG as text. All text is escaped; numbers are rounded to what a screen can show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

Point = tuple[float, float]


def tag(name: str, /, *inside: str, **attributes: object) -> str:
    """An element. Attributes: None leaves one out; stroke_width becomes stroke-width, class_ class."""
    words = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shown(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return f"<{name}{''.join(words)}>{''.join(inside)}</{name}>"


def text(said: str, x: float, y: float, **attributes: object) -> str:
    return tag("text", escape(said), x=x, y=y, **attributes)


def title(said: str) -> str:
    """What a mark says when it is pointed at, and to screen readers."""
    return tag("title", escape(said))


def circle(at: Point, radius: float, *inside: str, **attributes: object) -> str:
    return tag("circle", *inside, cx=at[0], cy=at[1], r=radius, **attributes)


def line(start: Point, end: Point, **attributes: object) -> str:
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], **attributes)


def polyline(points: Iterable[Point], *inside: str, **attributes: object) -> str:
    return tag("polyline", *inside, points=" ".join(f"{_shown(x)},{_shown(y)}" for x, y in points), fill="none", **attributes)


def _shown(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


class Axis:
    """From values to places on a line of the drawing. log: equal ratios get equal lengths; values must be above 0."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False) -> None:
        self.low, self.high, self.log = low, high, log
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        """Values beyond the ends are put at the ends."""
        low, high, value = (
            (math.log(v) for v in (self.low, self.high, max(value, self.low))) if self.log else (self.low, self.high, value)
        )
        share = (value - low) / (high - low) if high > low else 0.5
        return self._start + min(1.0, max(0.0, share)) * (self._end - self._start)

    @property
    def ticks(self) -> list[float]:
        """Round values within the ends, about five."""
        if self.log:
            exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps: Sequence[float] = (1, 2, 5) if self.high / self.low < 100 else (1,)
            values = [step * 10.0**exponent for exponent in exponents for step in steps]
        else:
            step = _round_step((self.high - self.low) / 5)
            values = [step * i for i in range(math.floor(self.low / step), math.ceil(self.high / step) + 1)]
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]


def around(values: Sequence[float], *, log: bool = False, zero: bool = False) -> tuple[float, float]:
    """Ends of an axis that hold these values, with some room. zero: from 0 on. Of no values: 0 to 1 (1 to 10 if log)."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not known:
        return (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        return min(known) / 1.5, max(known) * 1.5
    room = (max(known) - min(known)) * 0.08 or abs(max(known)) * 0.1 or 1.0
    return (0.0 if zero else min(known) - room), max(known) + room


def _round_step(raw: float) -> float:
    if raw <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(raw))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= raw * 0.999)
