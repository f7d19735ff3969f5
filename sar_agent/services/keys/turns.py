"""How often one user's requests for keys may change the tables.

All requests of a user that wait are served in one turn, so a job that asks for the keys of all its
phases pays for one. A user who asks again right after each answer (`key` and `key-done` in turn)
would have tables changed as fast as OpenSM takes them, while everybody else waits for each of these
installs. So after the first few turns each is followed by a pause, twice as long as the one before.
A turn is forgotten after `FORGET_SECONDS`, so the pauses of a user who never stops come to about
that length, and phases that last longer have none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection

FREE_TURNS = 6
"""Turns without a pause: phases that are asked for one by one."""
FIRST_PAUSE = 1.0
"""Seconds after the first turn that is not free."""
FORGET_SECONDS = 20.0
"""Seconds after which there is one turn less to count."""
MOST_UIDS = 4096
"""Users that are kept; the one whose last turn is oldest is forgotten first."""


class Turns:
    """Turns by uid. Not safe from several threads. `free` are uids without any pause, which send
    for all users."""

    def __init__(self, free: Collection[int], clock: Callable[[], float] = time.monotonic) -> None:
        self._free, self._clock = free, clock
        self._taken: dict[int, tuple[float, float]] = {}
        """Turns that count, and when the last began; the uid with the newest comes last."""

    def left(self, uid: int) -> float:
        """Seconds until the next turn of `uid` may begin; 0 where it may now."""
        count, at = self._taken.get(uid, (0.0, 0.0))
        if count <= FREE_TURNS:
            return 0.0
        pause = FIRST_PAUSE * math.pow(2.0, count - FREE_TURNS - 1)
        return max(0.0, at + pause - self._clock())

    def take(self, uid: int, came: float) -> None:
        """Work is done for a request of `uid` that was received at `came`. One that waited already
        when the last turn began is what that turn had no time for, and is no further turn."""
        now = self._clock()
        count, at = self._taken.get(uid, (0.0, -1.0))
        if uid in self._free or (uid in self._taken and came <= at):
            return
        count = max(0.0, count - (now - at) / FORGET_SECONDS) + 1
        self._taken.pop(uid, None)
        self._taken[uid] = count, now
        if len(self._taken) > MOST_UIDS:
            del self._taken[next(iter(self._taken))]
