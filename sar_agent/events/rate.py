"""How often a user may send messages: a token bucket for each uid.

The cost of a message grows with its length, so a long one takes more tokens. root and SlurmUser
send for all users and have no limit. How much of anything a user may have at a time is a `Quota`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TOKENS_A_SECOND = 500.0
"""Tokens added to a bucket in a second; a short message takes one."""
BUCKET_SIZE = 5000.0
"""Capacity of a bucket: the thousand processes of a job may send at once."""
BYTES_A_TOKEN = 4096
"""Bytes of a message for each further token."""
MOST_UIDS = 4096
"""Buckets that are kept."""


class TokenBuckets:
    """Safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[int, tuple[float, float]] = {}
        """Tokens by uid, and when they were counted; the uid that sent last comes last."""

    def allow(self, uid: int, length: int = 0) -> bool:
        """Takes the tokens for a message of `length` bytes; if too few are left, takes none and
        returns False."""
        cost = 1.0 + length // BYTES_A_TOKEN
        with self._lock:
            left = self._now(uid)
            enough = left >= cost
            self._left.pop(uid, None)
            self._left[uid] = left - cost * enough, self._clock()
            if len(self._left) > MOST_UIDS:
                del self._left[next(iter(self._left))]
        return enough

    def spent(self, uid: int) -> bool:
        """Whether too few tokens are left even for a short message."""
        with self._lock:
            return self._now(uid) < 1.0

    def _now(self, uid: int) -> float:
        left, at = self._left.get(uid, (BUCKET_SIZE, self._clock()))
        return min(BUCKET_SIZE, left + (self._clock() - at) * TOKENS_A_SECOND)
