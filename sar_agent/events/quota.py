"""How often somebody may speak: a bucket of tokens for each uid, of which a message takes some.

What a message costs us grows with its length, so a long one takes more tokens. root and SlurmUser
speak for all users and are not asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

A_SECOND = 500.0
"""Tokens that come back: a short message takes one."""
BURST = 5000.0
"""Tokens at most: a job's thousand processes may speak at once."""
BYTES = 4096
"""Of a message for each further token."""
MOST_UIDS = 4096


class TokenBuckets:
    """Safe from any thread."""

    def __init__(
        self,
        a_second: float = A_SECOND,
        burst: float = BURST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._a_second, self._burst, self._clock = a_second, burst, clock
        self._lock = threading.Lock()
        self._left: dict[int, tuple[float, float]] = {}
        """By uid: tokens, and when they were counted; the uid that spoke last comes last."""

    def take(self, uid: int, length: int = 0) -> bool:
        """Tokens for a message of `length` bytes; False, and none taken, where too few are left."""
        cost = 1.0 + length // BYTES
        with self._lock:
            left = self._now(uid)
            good = left >= cost
            self._left.pop(uid, None)
            self._left[uid] = left - cost * good, self._clock()
            if len(self._left) > MOST_UIDS:
                del self._left[next(iter(self._left))]
        return good

    def spent(self, uid: int) -> bool:
        """Whether not even a short message would be taken now."""
        with self._lock:
            return self._now(uid) < 1.0

    def _now(self, uid: int) -> float:
        left, at = self._left.get(uid, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * self._a_second)
