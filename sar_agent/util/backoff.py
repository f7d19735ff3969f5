"""Growing pauses between tries of an operation that fails again and again."""

from __future__ import annotations

import time


class Backoff:
    """After the first failure the next try is free; after the second the pause is twice `first`
    seconds, and it doubles with each further failure, up to `most`.

    The pause holds for one key: other jobs, another fabric or another OpenSM are tried at once.
    """

    def __init__(self, first: float, most: float) -> None:
        self.first, self.most = first, most
        self.failures = 0
        self._key: object = None
        self._until = 0.0

    def wait(self, key: object) -> float:
        """Seconds until the next try is allowed; 0 if it is allowed now."""
        return max(0.0, self._until - time.monotonic()) if key == self._key else 0.0

    def failed(self, key: object) -> None:
        """Records one more failure."""
        self.failures = self.failures + 1 if key == self._key else 1
        self._key = key
        # One failure is often transient, so the next pass may try again.
        pause = 0.0 if self.failures == 1 else self.first * 2.0 ** min(self.failures - 1, 30)
        self._until = time.monotonic() + min(self.most, pause)

    def succeeded(self) -> None:
        """Forgets all failures."""
        self.failures, self._key, self._until = 0, None, 0.0
