"""What was heard and not looked at yet, folded so that it stays small however much is said.

An event carries next to nothing (look; and what a job's traffic is), so a thousand of them are no
more than one for each job and speaker. Past `most` of these only that something was said is kept:
the look that follows finds the rest in the queue. A quarter of the room is kept for root and
SlurmUser, and no other uid has more than `MOST_OF_A_UID`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sar_agent.events.message import Event, MessageRefused, RefusalReason

MOST = 65536
MOST_OF_A_UID = 4096


@dataclass(frozen=True, slots=True)
class JobReport:
    """The last of what `uid` said of `job`; `traffic` is None where nobody gave one."""

    job: str
    uid: int
    traffic: str | None


class Inbox:
    """Safe from any thread. `wake` is called when the first event comes after a `take`."""

    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
        trusted: Collection[int] = frozenset(),
    ) -> None:
        self._wake, self._most, self._clock = wake, most, clock
        self.trusted = trusted
        self._of_uid: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._heard: dict[tuple[str, int], JobReport] = {}
        self._times: tuple[float, float] | None = None

    def put(self, event: Event, uid: int) -> None:
        """Raises `MessageRefused` where there is no room for what it says; a look follows even
        then."""
        key, traffic = (event.job, uid), event.known_traffic
        with self._lock:
            now, before = self._clock(), self._times
            self._times = (before[0] if before else now, now)
            known = self._heard.get(key)
            full = self._full(uid) if known is None else None
            if not full:
                self._of_uid[uid] += known is None
                before_that = known.traffic if known else None
                self._heard[key] = JobReport(event.job, uid, traffic or before_that)
        if before is None:
            self._wake()
        if full:
            raise full

    def _full(self, uid: int) -> MessageRefused | None:
        if uid in self.trusted:
            if len(self._heard) < self._most:
                return None
            return MessageRefused(
                RefusalReason.FULL, f"more than {self._most} jobs are waiting for a look"
            )
        if self._of_uid[uid] >= min(MOST_OF_A_UID, self._most):
            return MessageRefused(
                RefusalReason.TOO_MANY,
                f"{self._of_uid[uid]} jobs of uid {uid} are waiting for a look",
            )
        users = len(self._heard) - sum(self._of_uid[one] for one in self.trusted)
        if users < self._most * 3 // 4:
            return None
        return MessageRefused(RefusalReason.FULL, f"{users} jobs of users are waiting for a look")

    def pending(self) -> tuple[float, float] | None:
        """When the first and the last event came that nobody has taken; monotonic seconds."""
        return self._times

    def take(self) -> tuple[JobReport, ...]:
        """All of it; a look at the queue must begin after this call."""
        with self._lock:
            heard, self._heard, self._times = self._heard, {}, None
            self._of_uid = Counter()
        return tuple(heard.values())

    def __len__(self) -> int:
        return len(self._heard)
