"""What held during a window of the past: the predicted load, and whether anything changed.

Jobs come and go and routes change while ports count, so the loads of all passes within the window
are averaged, each for as long as it held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from sar_agent.counters.readings import WindowLeftOut
from sar_agent.fabric.model import F64

MOST_LOADS = 64
"""Loads that are remembered; of more, the oldest are forgotten."""
COVERED_SHARE = 0.9
"""Share of a window for which loads must be known."""


@dataclass(frozen=True, eq=False)
class _Held:
    begin: float
    cables: bytes
    load: F64 | None


class PredictedLoads:
    """The loads of the last passes, by `time.monotonic`."""

    def __init__(self) -> None:
        self._held: deque[_Held] = deque(maxlen=MOST_LOADS)

    def add(self, now: float, cables: bytes, load: F64 | None) -> None:
        """From `now` on, `load` (float64[C]; None: not known) is predicted for the fabric whose
        digest is `cables`."""
        last = self._held[-1] if self._held else None
        if last is None or last.load is not load or last.cables != cables:
            self._held.append(_Held(now, cables, load))

    def over(self, begin: float, end: float, cables: bytes) -> F64:
        """float64[C]: the mean from `begin` to `end`. Raises `WindowLeftOut` where loads are known
        for too little of that time, or the fabric has changed in it."""
        total: F64 | None = None
        known = 0.0
        until = end
        for held in reversed(self._held):
            seconds = max(0.0, until - max(held.begin, begin))
            until = min(until, held.begin)
            if seconds > 0 and held.cables != cables:
                raise WindowLeftOut(
                    "the fabric has changed while its ports counted; the window is left out"
                )
            if seconds > 0 and held.load is not None:
                part = held.load * seconds
                total = part if total is None else total + part
                known += seconds
            if held.begin <= begin:
                break
        if total is None or known < COVERED_SHARE * (end - begin):
            raise WindowLeftOut(
                f"loads were predicted for {known:.0f} s of a window of {end - begin:.0f} s only; "
                "the window is left out"
            )
        return np.divide(total, known)


MOST_MOMENTS = 4096
"""Changes that are remembered; of more, the oldest are forgotten."""


@dataclass
class _Span:
    begin: float
    end: float
    what: Hashable


class SteadySpans:
    """What passes saw, by `time.monotonic`. What two passes in a row saw alike is taken to have
    held between them; so a job that came and went between two passes is missed."""

    def __init__(self) -> None:
        self._spans: deque[_Span] = deque(maxlen=MOST_MOMENTS)

    def add(self, now: float, what: Hashable | None) -> None:
        """A pass at `now` saw `what`; None where it is not known."""
        last = self._spans[-1] if self._spans else None
        if last is not None and what is not None and last.what == what:
            last.end = now
        else:
            self._spans.append(_Span(now, now, what))

    def over(self, begin: float, end: float) -> Hashable | None:
        """What held from `begin` to `end`; None where it changed, or is not known."""
        for span in reversed(self._spans):
            if span.begin <= begin:
                return span.what if span.end >= end else None
        return None
