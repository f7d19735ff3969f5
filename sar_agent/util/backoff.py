"""Growing pauses between tries of an operation that fails again and again."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

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
