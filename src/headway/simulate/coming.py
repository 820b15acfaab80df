"""Who comes next: arrivals by the clock, and those that wait for another request's end."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import inf

from headway.modes import ModeName
from headway.simulate.trace import Arrival

THINK_SECONDS = 0.1
"""A request that comes so soon after another one's end may have waited for that."""
SHARE = 0.8
"""Of a closed loop's requests (its first ones aside) that come so soon."""
EVIDENCE = 10
"""Requests that must have done so."""


class Coming:
    """arrivals: in order of time. at: when the next one comes; inf if none is known to come."""

    def __init__(self, arrivals: Iterable[Arrival] = ()) -> None:
        self._timed: Iterator[Arrival] = iter(arrivals)
        self._first = next(self._timed, None)
        self._waited: list[tuple[float, int, Arrival]] = []
        self._added = 0
        self.at = inf if self._first is None else self._first.at

    def pop(self) -> Arrival:
        """The next one. Raises IndexError if there is none."""
        if self._first is not None and not (self._waited and self._waited[0][0] < self._first.at):
            arrival, self._first = self._first, next(self._timed, None)
        else:
            at, _, waited = heappop(self._waited)
            arrival = replace(waited, at=at)
        self._look()
        return arrival

    def add(self, arrival: Arrival, at: float) -> None:
        """One that comes at that time, whatever its own says."""
        self._added += 1
        heappush(self._waited, (at, self._added, arrival))
        self._look()

    def _look(self) -> None:
        timed = inf if self._first is None else self._first.at
        self.at = min(timed, self._waited[0][0]) if self._waited else timed


def closed_loops(arrivals: Sequence[Arrival], *, everybody: bool = False) -> list[Arrival]:
    """The arrivals that come by the clock; those of closed loops are hung on the request whose end they waited for
    (`Arrival.then`, after `think` seconds).

    A closed loop has a number of clients, each of which sends its next request when its last one has ended. A recording shows
    it: of the requests of one key and mode nearly all come within THINK_SECONDS of an end, one for each end, but for the first
    ones of all clients (as many as were ever there at once). Arrivals that don't care who ends do so in the share
    1 - exp(-rate x THINK_SECONDS) at the most, so where they are dense the time is cut to where that is half.
    everybody: treat each group so, whatever its share.
    """
    groups: dict[tuple[str | None, ModeName], list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        if arrival.mode is not None and arrival.ended is not None:
            groups[arrival.key, arrival.mode].append(arrival)
    waited: set[int] = set()
    for group in groups.values():
        pairs = _pairs(group)
        later = len(group) - _most_at_once(group)
        if everybody or (len(pairs) >= SHARE * later and later >= EVIDENCE):
            for before, after, think in pairs:
                before.then, before.think = after, think
                waited.add(id(after))
    return [arrival for arrival in arrivals if id(arrival) not in waited]


def _pairs(group: Sequence[Arrival]) -> list[tuple[Arrival, Arrival, float]]:
    """(the one that ended, the one that came then, seconds between): each end is followed by one arrival at the most."""
    span = group[-1].at - group[0].at
    within = min(THINK_SECONDS, 0.7 * span / len(group))
    ends = sorted(((_ended(a), a) for a in group), key=lambda pair: pair[0])
    pairs: list[tuple[Arrival, Arrival, float]] = []
    open_ends: deque[tuple[float, Arrival]] = deque(ends)
    for arrival in group:
        while open_ends and open_ends[0][0] < arrival.at - within:
            open_ends.popleft()
        if open_ends and open_ends[0][0] <= arrival.at and open_ends[0][1] is not arrival:
            end, before = open_ends.popleft()
            pairs.append((before, arrival, arrival.at - end))
    return pairs


def _most_at_once(group: Sequence[Arrival]) -> int:
    changes = sorted([(a.at, 1) for a in group] + [(_ended(a), -1) for a in group])
    most = here = 0
    for _, change in changes:
        here += change
        most = max(most, here)
    return most


def _ended(arrival: Arrival) -> float:
    assert arrival.ended is not None
    return arrival.ended
