"""Exceptions that nobody expected: counted, logged with their traceback once, backed off.

What users say reaches these places, so an error of ours must not be a way to fill the log, nor to
keep anybody busy.
"""

from __future__ import annotations

import logging
import threading
import traceback

from sar_agent.measure.metrics import Metrics

LONGEST_REST = 60.0
"""Seconds; the first rest is one, and each is twice the one before."""
MOST_KINDS = 100
"""Of errors that are told apart; past these they are only counted."""


class Unexpected:
    """Of one place, `where`. Safe from any thread."""

    def __init__(self, metrics: Metrics, where: str, log: logging.Logger) -> None:
        self._counter = metrics.unexpected_errors.labels(where)
        self._where, self._log = where, log
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._row = 0
        self._rest_until = 0.0

    def caught(self, error: Exception, now: float = 0.0) -> None:
        """Count it; log it with its traceback where no other came from the same line."""
        self._counter.inc()
        frames = traceback.extract_tb(error.__traceback__)
        line = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        kind = f"{type(error).__name__} {line}"
        with self._lock:
            self._row += 1
            self._rest_until = now + min(2.0 ** (self._row - 1), LONGEST_REST)
            loud = kind not in self._said and len(self._said) < MOST_KINDS
            if loud:
                self._said.add(kind)
        if loud:
            self._log.error(
                "%s: an error that nobody expected, a bug of sar-agent; others like it are counted "
                "in sar_unexpected_errors_total only",
                self._where,
                exc_info=error,
            )

    def resting(self, now: float) -> bool:
        """Whether it is too soon after one to try again."""
        return now < self._rest_until

    def fine(self) -> None:
        """It went well: the next rest is the first again."""
        self._row, self._rest_until = 0, 0.0
