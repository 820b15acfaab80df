"""May this request come in? Seats and a bounded queue for each mode; a seat is given only if every promise then still holds."""

from __future__ import annotations

from collections.abc import Callable

from headway.modes import Mode, ModeName, Modes
from headway.scheduler.promises import Demand, Promises, paced
from headway.scheduler.queue import Queue
from headway.scheduler.request import Request

LONGEST_WAIT = 60.0
"""Seconds: clients take no longer `retry-after` seriously."""
SHORTEST_WAIT = 0.1
ELSEWHERE_WAIT = 1.0
"""Where another model's requests are in the way: when those end is not known here."""

Fits = Callable[[list[Request]], bool]
"""Whether so many requests can be there at once, as far as memory goes."""


class Refused(Exception):
    """No seat and no place in the queue; a retry after `retry_after` seconds can succeed."""

    def __init__(self, reason: str, retry_after: float) -> None:
        super().__init__(reason)
        self.retry_after = min(max(retry_after, SHORTEST_WAIT), LONGEST_WAIT)


class Seats:
    """The seats of one mode: at most max_rows requests hold one, at most max_waiting wait."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.running: dict[str, Request] = {}
        self.waiting = Queue()

    def keys(self) -> set[str]:
        return {r.key for r in self.running.values()}

    def seat(self, request: Request) -> None:
        self.running[request.id] = request
        self.waiting.serve(request.key, prompt=request.num_prompt)

    def leave(self, request_id: str) -> Request | None:
        """Give up the seat or the place in the queue; None if it held neither."""
        request = self.running.pop(request_id, None)
        if request is None:
            request = next((r for r in self.waiting if r.id == request_id), None)
            if request is not None:
                self.waiting.remove(request)
        return request


class Admission:
    """memory: whether some fast requests, grown to their full length, have room together. A standard request can be evicted and
    goes on later; a fast one would break its promise."""

    def __init__(self, modes: Modes, promises: Promises, memory: Fits) -> None:
        self._promises = promises
        self._memory = memory
        self.seats = {mode.name: Seats(mode) for mode in modes}
        self._by_pace = sorted(self.seats.values(), key=lambda seats: -seats.mode.pace)

    def running(self) -> list[Request]:
        return [r for seats in self.seats.values() for r in seats.running.values()]

    def admit(self, request: Request, now: float) -> bool:
        """Seat the request (True) or queue it (False). Raises Refused."""
        seats = self.seats[request.mode]
        seatable = not len(seats.waiting) and self._may_sit(request)
        if not seatable and len(seats.waiting) >= seats.mode.max_waiting:
            raise self._refusal(request)
        self._check_first_token(request, now, seatable)
        seats.waiting.arrive(request.key, seats.keys())
        if seatable:
            seats.seat(request)
        else:
            seats.waiting.push(request)
        return seatable

    def board(self) -> list[Request]:
        """Give free seats to those who wait, fast ones first; returns the newly seated."""
        seated: list[Request] = []
        for seats in self._by_pace:
            while (request := seats.waiting.first()) is not None and self._may_sit(request):
                seats.waiting.remove(request)
                seats.seat(request)
                seated.append(request)
        return seated

    def leave(self, request_id: str) -> Request | None:
        """Forget a request; None if it isn't here (any more)."""
        for seats in self.seats.values():
            request = seats.leave(request_id)
            if request is not None:
                return request
        return None

    def _may_sit(self, request: Request) -> bool:
        seats = self.seats[request.mode]
        if len(seats.running) >= seats.mode.max_rows:
            return False
        running = self.running()
        if not running and not self._promises.elsewhere():  # alone it is served as well as can be, whatever was promised
            return True
        if request.mode is ModeName.FAST and not self._memory([*seats.running.values(), request]):
            return False
        return self._promises.hold(Demand.of_requests((*running, request)))

    def _check_first_token(self, request: Request, now: float, seatable: bool) -> None:
        if not request.promises_ttft:
            return
        allowed = request.ttft_deadline - now
        expected = self._promises.first_token_in(request, self.running())
        if expected > allowed or not seatable:
            late = f"the first token would take {expected:.2f} s" if seatable else "there is no seat at once"
            raise Refused(f"a first token within {allowed:.2f} s can't be promised now: {late}", self._next_seat(request))

    def _refusal(self, request: Request) -> Refused:
        mode = self.seats[request.mode].mode
        if len(self.seats[request.mode].running) >= mode.max_rows:
            queue = f" and its queue of {mode.max_waiting}" if mode.max_waiting else ""
            return Refused(f"all {mode.max_rows} places of mode {mode.name}{queue} are taken", self._next_seat(request))
        others = " and those of another model" if self._promises.elsewhere() else ""
        return Refused(
            f"{request.pace:.4g} tokens/s can't be promised now beside the {len(self.running())} requests that run{others}",
            self._next_seat(request),
        )

    def _next_seat(self, request: Request) -> float:
        """Seconds until there should be room: the running ones end at their own paces, one after the other, until all fits."""
        running = sorted(self.running(), key=_remaining)
        if not running:
            return ELSEWHERE_WAIT if self._promises.elsewhere() else SHORTEST_WAIT
        demands = [Demand.of([paced(request)])]  # with the last rows to leave, one more each time
        for last in reversed(running[1:]):
            demands.append(demands[-1].plus(paced(last)))
        ahead = len(self.seats[request.mode].waiting)
        for leaving in running:
            left = demands.pop()
            if leaving.mode is request.mode:
                ahead -= 1
            if ahead < 0 and self._promises.hold(left):
                return _remaining(leaving)
        return _remaining(running[-1])


def _remaining(request: Request) -> float:
    return (request.max_tokens - request.num_output) / request.pace
