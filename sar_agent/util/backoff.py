"""Not to try the same thing every half minute when it failed again and again."""

from __future__ import annotations

import time


class Backoff:
    """The first failure costs `first` seconds, each further one twice as many, up to `most`.

    It counts for one key only: other jobs, another fabric or another OpenSM are worth a new try.
    """

    def __init__(self, first: float, most: float) -> None:
        self.first, self.most = first, most
        self.failures = 0
        self._key: object = None
        self._until = 0.0

    def wait(self, key: object) -> float:
        """Seconds to go until the next try; 0 if it may be now."""
        return max(0.0, self._until - time.monotonic()) if key == self._key else 0.0

    def failed(self, key: object) -> None:
        """One more failure."""
        self.failures = self.failures + 1 if key == self._key else 1
        self._key = key
        # Once failed, the next pass may try again: things settle.
        pause = 0.0 if self.failures == 1 else self.first * 2.0 ** min(self.failures - 1, 30)
        self._until = time.monotonic() + min(self.most, pause)

    def succeeded(self) -> None:
        """All is well."""
        self.failures, self._key, self._until = 0, None, 0.0
