"""What ports counted in the last window, from a Prometheus server or from dumps.

A reading takes as long as the server lets it (30 s at the most), so a daemon reads in a thread of
its own and a pass takes what is there. One that fails leaves the reading before, with a sentence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sar_agent.agent.source_ages import AHEAD_SECONDS
from sar_agent.counters.counter_files import read_counter_file
from sar_agent.counters.port_errors import PortErrors, added, read_port_errors
from sar_agent.counters.prometheus_errors import (
    PrometheusTime,
    prometheus_grown,
    prometheus_window,
)
from sar_agent.counters.readings import PortReadings, PortTotals, WindowLeftOut, difference
from sar_agent.counters.window import CounterWindow, align
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric

OLD_WINDOWS = 3.0
"""Counters that are older than so many windows, and a minute, say nothing about now."""


@dataclass(frozen=True, eq=False)
class Growth:
    """One window."""

    errors: PortErrors
    """What was added in it, by the ports of the fabric."""
    window: CounterWindow | None
    """What links carried and waited; None where that is not known."""
    notes: tuple[str, ...] = ()


class GrowthReader:
    """Reads window after window from `source`, an address or a path."""

    def __init__(self, source: str, window: float) -> None:
        self.source, self.window = source, window
        self.last: Growth | None = None
        self.problem = ""
        """Why the last reading failed; empty where it did not."""
        self._before: tuple[PortErrors, PortTotals | None] | None = None
        """Of a dump: the reading before."""
        self._due = 0.0
        self._thread: threading.Thread | None = None

    @property
    def at(self) -> float:
        """When the last window ended, Unix seconds; 0.0 before the first."""
        return self.last.errors.time if self.last else 0.0

    @property
    def stale(self) -> str:
        """Why what was counted says nothing about now, in a sentence; empty where it does."""
        if not self.source:
            return ""
        age = time.time() - self.at
        if self.last is None:
            return f"counters: {self.problem}" if self.problem else ""
        if age <= OLD_WINDOWS * self.window + 60:
            return ""
        why = self.problem or f"{self.source} was not written again"
        return f"counters: {why}; the last window ended {age:.0f} s ago"

    def read(self, fabric: Fabric, *, wait: bool) -> None:
        """Read now if a third of a window has passed since the last time. Without `wait`, in a
        thread; never raises `SarError`."""
        now = time.monotonic()
        if not self.source or now < self._due or (self._thread and self._thread.is_alive()):
            return
        self._due = now + self.window / 3
        if wait:
            self._read(fabric)
            return
        self._thread = threading.Thread(
            target=self._read, args=(fabric,), name="counters", daemon=True
        )
        self._thread.start()

    def _read(self, fabric: Fabric) -> None:
        try:
            found = self._of_server(fabric) if "://" in self.source else self._of_dump(fabric)
            self.last, self.problem = found or self.last, ""
        except SarError as error:
            self.problem = str(error)
        except Exception as error:  # a thread's own would be lost
            self.problem = f"unexpected: {type(error).__name__}: {error}"

    def _of_server(self, fabric: Fabric) -> Growth:
        at = time.time()
        place = PrometheusTime(self.source.rstrip("/"), at)
        begin = place._replace(at=at - self.window)
        errors = prometheus_grown(place, self.window, fabric)
        return _growth(fabric, errors, lambda: prometheus_window([begin, place]))

    def _of_dump(self, fabric: Fabric) -> Growth | None:
        errors = read_port_errors(self.source).of(fabric)
        if (ahead := errors.time - time.time()) > AHEAD_SECONDS:
            raise Unavailable(
                f"{self.source} is of {ahead:.0f} s from now: the clock of the machine that wrote "
                "it, or its time zone, differs from this one's; let both ask the same NTP server"
            )
        try:
            totals: PortTotals | None = read_counter_file(self.source)
        except SarError:  # only errors were counted
            totals = None
        before, self._before = self._before, (errors, totals)
        if before is None or errors.time <= before[0].time:
            self._before = before or self._before
            return None
        then = before[1]

        def carried() -> PortReadings | None:
            return difference(then, totals, errors.time) if then and totals else None

        return _growth(fabric, added(before[0], errors), carried)


def _growth(
    fabric: Fabric, errors: PortErrors, carried: Callable[[], PortReadings | None]
) -> Growth:
    try:
        readings = carried()
        window = align(fabric, readings) if readings else None
    except WindowLeftOut as why:  # errors were counted, if nothing else
        return Growth(errors, None, (*errors.notes, str(why)))
    return Growth(errors, window, errors.notes + (window.notes if window else ()))
