"""Accepted and refused messages, counted for `sar-agent status` and for a metrics system.

Anyone who can reach the port can cause refusals, so each reason is logged at most once in ten
seconds, with the number of refusals since.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import prometheus_client

from sar_agent.events.message import Message, RefusalReason
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
LOG_PAUSE_SECONDS = 10.0
"""Seconds between two log lines for the same reason."""


class MessageMetrics(Protocol):
    """What this room needs of a metrics system; `telemetry.metrics.Metrics` provides it."""

    @property
    def unexpected_errors(self) -> prometheus_client.Counter:
        """Unexpected errors, by the place that caught them."""

    def expect_messages(self, events: Iterable[str]) -> None:
        """These events may arrive."""

    def message_accepted(self, event: str, transport: str, delay: float | None) -> None:
        """A message was accepted, `delay` seconds after it was sent."""

    def message_refused(self, reason: RefusalReason) -> None:
        """A message was refused."""


class MessageCounters:
    """Counts messages. Safe from any thread."""

    def __init__(self, metrics: MessageMetrics) -> None:
        self._metrics = metrics
        self._lock = threading.Lock()
        self.unexpected = UnexpectedErrors(metrics.unexpected_errors)
        self._accepted: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._logged: dict[RefusalReason, tuple[float, int]] = {}
        """Time of the last log line, and the number of refusals until then."""

    def expect(self, events: Iterable[str]) -> None:
        """Reports zero messages of these events, until the first arrives."""
        self._metrics.expect_messages(events)

    def accepted(self, message: Message, transport: str) -> None:
        """Counts a message that was accepted."""
        with self._lock:
            self._accepted[message.event] += 1
        delay = message.delay() if message.at else None
        self._metrics.message_accepted(message.event, transport, delay)

    def refused(self, reason: RefusalReason, sentence: str, transport: str) -> None:
        """Counts a message that was refused, and logs the sentence unless the reason was logged
        just now."""
        with self._lock:
            self._refused[reason.value] += 1
            count, now = self._refused[reason.value], time.monotonic()
            last, count_then = self._logged.get(reason, (now - LOG_PAUSE_SECONDS, 0))
            due = now - last >= LOG_PAUSE_SECONDS
            if due:
                self._logged[reason] = now, count
        self._metrics.message_refused(reason)
        if due:
            unlogged = count - count_then - 1
            since = f" ({unlogged} more like it since the last)" if unlogged else ""
            log.warning("refused an event (%s): %s%s", transport, sentence, since)

    def counts(self) -> dict[str, dict[str, int]]:
        """`{"events": {"start": 3, …}, "refused": {"replayed": 1, …}}`."""
        with self._lock:
            return {"events": dict(self._accepted), "refused": dict(self._refused)}
