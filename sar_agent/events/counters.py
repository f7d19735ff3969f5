"""What came and what was refused: counted for Prometheus and `status`, said in the log with care.

Whoever can reach the port decides how often something is refused, so each reason is logged at most
once in ten seconds, with how many there were.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from sar_agent.events.message import Message, RefusalReason
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
PAUSE = 10.0


class MessageCounters:
    """Safe from any thread."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics, self._clock = metrics, clock
        self._lock = threading.Lock()
        self.unexpected = UnexpectedErrors(metrics.unexpected_errors)
        self._events: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._said: dict[RefusalReason, tuple[float, int]] = {}
        """When it was last logged, and how many were refused until then."""

    def took(self, event: Message, way: str) -> None:
        """A message that is believed."""
        with self._lock:
            self._events[event.event] += 1
        self._metrics.events.labels(event.event, way).inc()
        if event.at:
            self._metrics.event_delay.observe(event.delay())

    def refused(self, why: RefusalReason, sentence: str, way: str) -> None:
        """One that is not."""
        with self._lock:
            self._refused[why.value] += 1
            count, now = self._refused[why.value], self._clock()
            last, before = self._said.get(why, (now - PAUSE, 0))
            loud = now - last >= PAUSE
            if loud:
                self._said[why] = now, count
        self._metrics.events_refused.labels(why.value).inc()
        if loud:
            more = count - before - 1
            since = f" ({more} more like it since the last)" if more else ""
            log.warning("refused an event (%s): %s%s", way, sentence, since)

    def counts(self) -> dict[str, dict[str, int]]:
        """`{"events": {"start": 3, …}, "refused": {"replayed": 1, …}}`."""
        with self._lock:
            return {"events": dict(self._events), "refused": dict(self._refused)}
