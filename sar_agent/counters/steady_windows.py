"""Windows that can be compared: the same jobs and the same routes from their begin to their end.

Passes see jobs and routes at moments. What two passes in a row saw alike is taken to have held
between them; so a job that came and went between two passes is missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

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
