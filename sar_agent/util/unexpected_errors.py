"""Errors that nobody foresaw: counted, told once, tried again ever less often. The loop lives.

A `SarError` says what is wrong outside; all other exceptions are errors of the agent's own, or of
the machine (no memory, no room in /tmp). To end for one of them would stop repairs, and a restart
comes back to what caused it.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client import Counter

log = logging.getLogger(__name__)
_T = TypeVar("_T")
FIRST = 1.0
"""Seconds of pause after the first failure; each further one has twice as many."""
MOST = 60.0
"""Seconds of pause at most: what stands still meanwhile is a repair."""
MOST_KINDS = 100
"""Of errors at one place that are told apart: what users say must not be a way to fill the log."""


@dataclass
class _Row:
    """Failures one after the other at one place; `until` by the clock."""

    failures: int = 0
    until: float = 0.0
    said: set[object] = field(default_factory=set)


class UnexpectedErrors:
    """`count` has a label `where`. Safe from any thread."""

    def __init__(self, count: Counter, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock = count, clock
        self._rows: dict[str, _Row] = {}
        self._lock = threading.Lock()

    def guard(self, where: str, act: Callable[[], _T], instead: _T, *, part: bool = False) -> _T:
        """What `act` gives; `instead` where it raises anything that does not end the process. Where
        it is only a `part`, that it goes well does not say that all there does."""
        try:
            found = act()
        except Exception as error:
            self.caught(where, error)
            return instead
        if not part:
            self.good(where)
        return found

    def caught(self, where: str, error: Exception) -> str:
        """Count it, and log its traceback where there was no such error before. Returns a sentence
        about it."""
        found = _sort(error)
        with self._lock:
            row = self._rows.setdefault(where, _Row())
            row.failures += 1
            row.until = self._clock() + min(MOST, FIRST * 2.0 ** min(row.failures - 1, 30))
            loud = found not in row.said and len(row.said) < MOST_KINDS
            if loud:
                row.said.add(found)
        self._count.labels(where).inc()
        sentence = f"unexpected {type(error).__name__} in the {where} ({_brief(error)})"
        if loud:
            with suppress(Exception):  # no memory left even for this
                log.error("%s; going on, this is an error of sar-agent", sentence, exc_info=error)
        return f"{sentence}; the log has where, once"

    def good(self, where: str) -> None:
        """It went well: the next failure is a first one. One that comes and goes is not told again
        each time."""
        if row := self._rows.get(where):
            row.failures, row.until = 0, 0.0

    def wait(self, where: str) -> float:
        """Seconds until it may be tried again; 0 if it may be now."""
        row = self._rows.get(where)
        return max(0.0, row.until - self._clock()) if row else 0.0


def _brief(error: Exception) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # whatever its __str__ does
        text = ""
    return text[:200] or "without a word"


def _sort(error: Exception) -> object:
    """By which two errors are the same: kind, place, and words without numbers."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    place = tuple((one.filename, one.lineno) for one in frames)
    return type(error), place, re.sub(r"\d+", "", _brief(error))
