"""Ctrl-C where there is something to be saved first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Stop:
    """wanted: the number of the signal that asked for an end, or None."""

    def __init__(self) -> None:
        self.wanted: int | None = None


@contextlib.contextmanager
def stoppable() -> Iterator[Stop]:
    """Inside, the first SIGINT or SIGTERM only leaves a note; the next one acts as ever."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _: FrameType | None) -> None:
        stop.wanted = number
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()
