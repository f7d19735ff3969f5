"""Windows that can be compared: the same jobs and the same routes from their begin to their end.

Passes see jobs and routes at moments. What two passes in a row saw alike is taken to have held
between them; so a job that came and went between two passes is missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from sar_agent.config.counters import TrialMeasure
from sar_agent.counters.compare import RESOLUTION
from sar_agent.counters.window import CounterWindow
from sar_agent.fabric import Fabric

MOST_MOMENTS = 4096
"""Changes that are remembered; of more, the oldest are forgotten."""


@dataclass
class _Span:
    begin: float
    end: float
    what: Hashable


class SteadySpans:
    """What passes saw, by `time.monotonic`."""

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


def measure_of(fabric: Fabric, window: CounterWindow, measure: TrialMeasure) -> float | None:
    """What a trial compares, lower is better; None for a window that does not show it.

    "load": the largest share of its speed that a link carried, by the mean over links. Both grow
    alike if jobs send more, and all shortest paths of a pair are equally long. "waits":
    PortXmitWait of all links for each GB that they carried."""
    live = window.known
    if not live.any():
        return None
    share = window.share[live]
    mean = float(share.mean())
    if mean < RESOLUTION:
        return None
    if measure == "load":
        return float(share.max()) / mean
    waits = window.waits[live]
    if not np.isfinite(waits).all():
        return None
    rate = fabric.channel_rate[live].astype(np.float64) / 8
    return float(waits.sum() / (share * rate).sum())
