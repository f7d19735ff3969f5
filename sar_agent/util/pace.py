"""When things are due: by cause, after failures, and by a clock that does not jump."""

from __future__ import annotations

import time
from collections.abc import Callable
from time import monotonic


class Pace:
    """`clock` returns seconds and must not jump."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self._until: dict[str, float] = {}

    def put_off(self, cause: str, seconds: float, since: float | None = None) -> None:
        """`cause` is due in `seconds` from now on, or from `since`, by the clock."""
        self._until[cause] = (self.clock() if since is None else since) + seconds

    def __contains__(self, cause: str) -> bool:
        """Whether `cause` was put off and is not forgotten, due or not."""
        return cause in self._until

    def forget(self, *causes: str) -> None:
        """They were never put off."""
        for cause in causes:
            self._until.pop(cause, None)

    def left(self, cause: str) -> float:
        """Seconds until `cause` is due; 0 where it is, or was never put off."""
        return max(0.0, self._until.get(cause, 0.0) - self.clock()) if cause in self else 0.0

    def due(self, cause: str) -> bool:
        """Whether it is time."""
        return not self.left(cause)


Clock = Callable[[], float]


class Backoff:
    """After the first failure the pause is `first` seconds; it doubles with each further one, up to
    `most`. There is none after the first `free` failures.

    The pause holds for one key: other jobs, another fabric or another OpenSM are tried at once.
    """

    def __init__(self, first: float, most: float, free: int = 0, clock: Clock = monotonic) -> None:
        self.first, self.most, self.free, self.clock = first, most, free, clock
        self.failures = 0
        self._key: object = None
        self._until = 0.0

    def wait(self, key: object = None) -> float:
        """Seconds until the next try is allowed; 0 if it is allowed now."""
        return max(0.0, self._until - self.clock()) if key == self._key else 0.0

    def failed(self, key: object = None) -> None:
        """Records one more failure."""
        self.failures = self.failures + 1 if key == self._key else 1
        self._key = key
        pause = self.first * 2.0 ** min(self.failures - 1, 30)
        self._until = self.clock() + (min(self.most, pause) if self.failures > self.free else 0.0)

    def succeeded(self) -> None:
        """Forgets all failures."""
        self.failures, self._key, self._until = 0, None, 0.0


_WALL, _MONOTONIC = time.time(), time.monotonic()


def steady_time() -> float:
    """Unix seconds, by the clock as it was when the process started: they do not jump when the
    machine's clock is set, so that a lease of an hour lasts an hour, and mean something on disk and
    to clients."""
    return _WALL + time.monotonic() - _MONOTONIC
