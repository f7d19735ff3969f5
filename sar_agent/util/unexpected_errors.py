"""Survives unexpected errors: counts them, logs each once, and makes retries ever less frequent.

A `SarError` describes a problem outside of the agent; all other exceptions are bugs of the agent,
or problems of the machine (no memory, no room in /tmp). If the agent ended because of one of them,
repairs would stop, and after a restart it would meet the same cause again.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from prometheus_client import Counter

from sar_agent.util.pace import Backoff

log = logging.getLogger(__name__)
_T = TypeVar("_T")
FIRST_PAUSE = 1.0
"""Seconds of pause after the first failure; the pause doubles with each further failure."""
LONGEST_PAUSE = 60.0
"""The longest pause in seconds: repairs wait for that long."""
MOST_KINDS = 100
"""Different errors that are logged per place: users' input must not be a way to fill the log."""


class UnexpectedErrors:
    """`count` is a counter with a label `where`. All methods are thread-safe."""

    def __init__(self, count: Counter, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self.clock = count, clock
        pause = partial(Backoff, FIRST_PAUSE, LONGEST_PAUSE, clock=lambda: self.clock())
        self._pauses = defaultdict[str, Backoff](pause)
        self._logged = defaultdict[str, set[object]](set)
        self._lock = threading.Lock()

    def guard(
        self,
        where: str,
        act: Callable[[], _T],
        instead: _T,
        *,
        part: bool = False,
        hook: str = "",
    ) -> _T:
        """The result of `act()`, or `instead` where it raises any exception that does not end the
        process. Where `act` is only a `part` of the work at `where`, its success does not reset the
        failures counted there. `hook`: of the service `where`."""
        try:
            result = act()
        except Exception as error:
            self.caught(where, error, hook)
            return instead
        if not part:
            self.good(where)
        return result

    def caught(self, where: str, error: Exception, hook: str = "") -> str:
        """Count the error, and log its traceback where no such error was logged before. Returns a
        sentence about it."""
        key = _key(error)
        with self._lock:
            self._pauses[where].failed()
            logged = self._logged[where]
            new = key not in logged and len(logged) < MOST_KINDS
            if new:
                logged.add(key)
        self._count.labels(where).inc()
        place = f"{hook} of the service {where}" if hook else f"the {where}"
        sentence = f"unexpected {type(error).__name__} in {place} ({_brief(error)})"
        if new:
            with suppress(Exception):  # no memory left even for this
                log.error("%s; going on, this is an error of sar-agent", sentence, exc_info=error)
        return f"{sentence}; its traceback is in the log, once"

    def good(self, where: str) -> None:
        """Record a success: the next failure counts as the first. An error that recurs after it is
        not logged again."""
        self._pauses[where].succeeded()

    def wait(self, where: str) -> float:
        """Seconds until the next try is allowed; 0 if it is allowed now."""
        return self._pauses[where].wait()


def _brief(error: Exception) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # whatever its __str__ does
        text = ""
    return text[:200] or "no message"


def _key(error: Exception) -> object:
    """Equal for errors of the same class, place and message, apart from numbers."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    place = tuple((frame.filename, frame.lineno) for frame in frames)
    return type(error), place, re.sub(r"\d+", "", _brief(error))
