"""The thread that owns the device. Models that share it take turns, a step at a time."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from headway.runtime.outbox import Outbox
from headway.scheduler.sharing import Pressing, whose_turn
from headway.scheduler.step import Step

log = logging.getLogger("headway.loop")


class Station(Protocol):
    """A model on the device: see EngineLoop. All but `foresee`, `take` and `hand_out` is called with the device's lock held."""

    def pressing(self) -> Pressing | None:
        """None if there is nothing to do."""

    def foresee(self) -> None:
        """Ask what the next step can use; it takes time of the device."""

    def plan(self, now: float, until: float) -> Step | None:
        """The next step, which should have ended at `until`; None if there is none after all."""

    def take(self, step: Step, begun: float, meanwhile: Callable[[], None]) -> Outbox:
        """Run a step; `meanwhile` is called once while the device works. Returns what it yielded. Raises what makes it useless
        to go on."""

    def hand_out(self, outbox: Outbox) -> None: ...

    def end(self) -> None:
        """It is not asked for anything any more."""


class Device:
    """Stations join before or after `start`; the thread ends when the last one has left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        # Held for planning and completing (well under a millisecond), never while the device works.
        self.lock = threading.Lock()
        self.wake = threading.Condition(self.lock)
        self._stations: list[Station] = []
        self._busy: Station | None = None
        self._thread = threading.Thread(target=self._run, name="headway-engine", daemon=True)

    def join(self, station: Station) -> None:
        with self.lock:
            self._stations.append(station)

    def start(self) -> None:
        """Once; starting again changes nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def has(self, station: Station) -> bool:
        """Whether it still gets its turns."""
        return self._thread.is_alive() and station in self._stations

    def leave(self, station: Station) -> None:
        """Waits for the step that is running, if it is this station's, and for the thread to end if nobody is left."""
        with self.lock:
            if station in self._stations:
                self._stations.remove(station)
            self.wake.notify_all()
            while self._busy is station and threading.current_thread() is not self._thread:
                self.wake.wait()
            last = not self._stations
        if last and self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        pending: tuple[Station, Outbox] | None = None

        def hand_out() -> None:
            nonlocal pending
            if pending is not None:
                station, outbox = pending
                pending = None
                station.hand_out(outbox)

        try:
            while True:
                begun = self.clock()
                with self.lock:
                    turn = self._turn(begun)
                if turn is not None:
                    turn[0].foresee()
                with self.lock:
                    planned = self._plan(turn, begun)
                    if planned is not None:
                        self._busy = planned[0]
                    elif pending is None:
                        if not self._stations:
                            return
                        self.wake.wait()
                        continue
                if planned is None:
                    hand_out()
                    continue
                outbox = self._taken(*planned, begun, hand_out)
                if outbox.tokens:
                    pending = (planned[0], outbox)
        except Exception:
            log.exception("the device's thread has ended by an error of its own")
        finally:
            with self.lock:
                left, self._stations = self._stations, []
            for station in left:
                station.end()

    def _turn(self, now: float) -> tuple[Station, float] | None:
        if len(self._stations) == 1:
            return self._stations[0], math.inf
        turn = whose_turn([station.pressing() for station in self._stations], now)
        return (self._stations[turn.index], turn.until) if turn is not None else None

    def _plan(self, turn: tuple[Station, float] | None, now: float) -> tuple[Station, Step] | None:
        """The step of whose turn it is, or of anyone else who has one."""
        if turn is not None:
            station, until = turn
            if station in self._stations and (step := station.plan(now, until)) is not None:
                return station, step
        for station in self._stations:
            if (turn is None or station is not turn[0]) and (step := station.plan(now, math.inf)) is not None:
                return station, step
        return None

    def _taken(self, station: Station, step: Step, begun: float, meanwhile: Callable[[], None]) -> Outbox:
        """What the step yielded; nothing of a station that ends with it."""
        try:
            return station.take(step, begun, meanwhile)
        except Exception:
            log.exception("a model's loop has ended by an error of its own")
            meanwhile()
            with self.lock:
                if station in self._stations:
                    self._stations.remove(station)
            station.end()
            return Outbox()
        finally:
            with self.lock:
                self._busy = None
                self.wake.notify_all()
