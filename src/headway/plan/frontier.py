"""The best that some configurations can do: tokens/s of all users per chip, at no less than a speed for each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from math import exp, log

Point = tuple[float, float]
"""(tokens/s of one user, tokens/s of all users per chip)."""


def throughput(rows: float, isl_seconds: float, tpot: float, osl: float, chips: int) -> float:
    """Output tokens/s per chip of a closed loop: rows x osl / (ttft + tpot x (osl - 1)) / chips."""
    return rows * osl / (isl_seconds + tpot * (osl - 1)) / chips


def frontier(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both, slowest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda one: (-one[0], -one[1])):
        if not best or point[1] > best[-1][1]:
            best.append(point)
    return best[::-1]


def at_speed(best: list[Point], speed: float) -> float | None:
    """Throughput per chip at a speed, straight between a frontier's points in logarithms; None if no point is that fast.

    Below the slowest point its own throughput: being faster than asked costs nothing more.
    """
    speeds = [point[0] for point in best]
    place = bisect_left(speeds, speed)
    if place == len(best):
        return None
    if place == 0 or best[place][0] == speed:
        return best[place][1]
    (slow, much), (quick, little) = best[place - 1], best[place]
    share = log(speed / slow) / log(quick / slow)
    return exp(log(much) + share * log(little / much))


def price_multiple(best: list[Point], slow: float, quick: float) -> float | None:
    """What a token costs at one speed over another; None if the frontier doesn't reach both."""
    if not best or best[0][0] > slow:
        return None
    low, high = at_speed(best, quick), at_speed(best, slow)
    return high / low if low and high else None
