"""May this request come in? Seats and a bounded queue for each mode."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from headway.modes import Mode
from headway.scheduler.request import Request

LONGEST_WAIT = 60.0
"""Seconds: clients take no longer `retry-after` seriously."""


class Refused(Exception):
    """No seat and no place in the queue; a retry after `retry_after` seconds can succeed."""

    def __init__(self, mode: Mode, retry_after: float) -> None:
        super().__init__(f"all {mode.max_rows} places of mode {mode.name} and its queue of {mode.max_waiting} are taken")
        self.mode = mode
        self.retry_after = retry_after


class Seats:
    """The seats of one mode: at most max_rows requests hold one, at most max_waiting wait in order of arrival."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.running: dict[str, Request] = {}
        self.waiting: deque[Request] = deque()

    def admit(self, request: Request) -> None:
        """Queue the request, or raise Refused."""
        full = len(self.running) + len(self.waiting) >= self.mode.max_rows + self.mode.max_waiting
        if full:
            raise Refused(self.mode, self._next_seat())
        self.waiting.append(request)

    def board(self) -> list[Request]:
        """Give the free seats to those who wait longest; returns the newly seated."""
        seated: list[Request] = []
        while self.waiting and len(self.running) < self.mode.max_rows:
            request = self.waiting.popleft()
            self.running[request.id] = request
            seated.append(request)
        return seated

    def leave(self, request_id: str) -> Request | None:
        """Give up the seat or the place in the queue; None if it held neither."""
        request = self.running.pop(request_id, None)
        if request is not None:
            return request
        for request in self.waiting:
            if request.id == request_id:
                self.waiting.remove(request)
                return request
        return None

    def _next_seat(self) -> float:
        """Seconds until a place should be free: when the first of the running ones is through at its own pace."""
        return min(min(_remaining(self.running.values()), default=1.0), LONGEST_WAIT)


def _remaining(requests: Iterable[Request]) -> Iterable[float]:
    return ((r.max_tokens - r.num_output) / r.pace for r in requests)
