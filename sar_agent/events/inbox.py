"""Events that wait for the agent, merged so that they stay few.

An event tells the agent to read the queue, and may name the traffic of a job. So the inbox holds
one report for each job and sender, however many events arrive. When it is full it only records that
an event arrived: reading the queue finds the rest. A quarter of the room is reserved for root and
SlurmUser, and no other uid may have more than `MOST_OF_A_UID` reports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sar_agent.events.message import Event, MessageRefused, RefusalReason
from sar_agent.util.quota import Bound, Quota

MOST_REPORTS = 65536
"""Reports in the inbox."""
MOST_OF_A_UID = 4096


@dataclass(frozen=True, slots=True)
class JobReport:
    """The last report of `uid` on `job`; `traffic` is None if it gave no hint."""

    job: str
    uid: int
    traffic: str | None


class Inbox:
    """Safe from any thread. `wake` is called when the first event arrives after a `drain`."""

    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        most: int = MOST_REPORTS,
        clock: Callable[[], float] = time.monotonic,
        trusted: Collection[int] = frozenset(),
    ) -> None:
        self._wake, self._clock = wake, clock
        self._room = Quota(most, MOST_OF_A_UID, kept=most // 4, trusted=trusted)
        self._lock = threading.Lock()
        self._reports: dict[tuple[str, int], JobReport] = {}
        self._times: tuple[float, float] | None = None

    def add(self, event: Event, uid: int) -> None:
        """Adds an event. Raises `MessageRefused` if there is no room for its report; the queue is
        read even then."""
        key, traffic = (event.job, uid), event.known_traffic
        with self._lock:
            now, before = self._clock(), self._times
            self._times = (before[0] if before else now, now)
            known = self._reports.get(key)
            full = self._room.try_add(uid) if known is None else None
            if not full:
                earlier = known.traffic if known else None
                self._reports[key] = JobReport(event.job, uid, traffic or earlier)
        if before is None:
            self._wake()
        if full is Bound.ALL:
            raise MessageRefused(RefusalReason.FULL, f"{len(self)} reports on jobs are waiting")
        if full:
            raise MessageRefused(
                RefusalReason.TOO_MANY, f"reports of uid {uid} on {MOST_OF_A_UID} jobs are waiting"
            )

    def pending(self) -> tuple[float, float] | None:
        """When the first and the last waiting event arrived, in monotonic seconds."""
        return self._times

    def drain(self) -> tuple[JobReport, ...]:
        """Removes and returns all reports. The queue must be read after this call, not before."""
        with self._lock:
            reports, self._reports, self._times = self._reports, {}, None
            self._room.clear()
        return tuple(reports.values())

    def __len__(self) -> int:
        return len(self._reports)
