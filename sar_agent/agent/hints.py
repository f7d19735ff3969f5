"""Hints: what users say about their jobs' traffic with `--sar-traffic`, kept until the job ends.

A hint comes with an event, the job with the queue, in either order. So a hint waits here with the
uid of its sender; it counts if that is root, SlurmUser, or the user whose job the queue shows. A
comment in the queue itself (`sar:`) takes precedence: there the site can overrule a user. A hint
whose job the queue does not show is dropped after a minute; the others survive a restart.

A user has as many hints on own jobs as the queue shows own jobs. On other jobs, each uid may have
`MOST_UNSEEN_OF_A_UID` hints, and all users together `MOST_UNSEEN_HINTS`; root and SlurmUser always
have room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sar_agent.events.inbox import JobReport
from sar_agent.events.message import RefusalReason
from sar_agent.jobs.record import JobRecord
from sar_agent.util.pace import steady_time
from sar_agent.util.plural import plural
from sar_agent.util.quota import Quota
from sar_agent.util.store import JsonStore

SECONDS_UNSEEN = 60.0
"""Seconds in which a hint's job must appear in the queue, and for which it is kept afterwards."""
MOST_UNSEEN_HINTS = 16384
MOST_UNSEEN_OF_A_UID = 256


class Hint(BaseModel):
    """`at`: Unix seconds at which it was given, or its job was last in the queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: str
    uid: int
    traffic: str
    at: float


class Hints:
    """`hints.json` in `folder`. `trusted` uids may give hints on all jobs; `refused` is called for
    hints that turn out to be on another user's job, or are past a bound."""

    def __init__(
        self,
        folder: Path,
        trusted: frozenset[int],
        refused: Callable[[RefusalReason, str], None] = lambda why, sentence: None,
        *,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._store: JsonStore[list[Hint]] = JsonStore(
            folder / "hints.json", list[Hint], "starting without hints"
        )
        self._trusted, self._clock, self.refused = trusted, clock, refused
        self._owner: dict[str, int | None] = {}
        """Owner of each job, as the queue showed it last."""
        now = self._clock()  # a clock that was ahead must not keep them for ever
        self._hints = {
            (hint.job, hint.uid): hint.model_copy(update={"at": min(hint.at, now)})
            for hint in self._store.load() or ()
        }
        self._saved = dict(self._hints)

    def add(self, reports: Iterable[JobReport]) -> None:
        """Keep the hints of what was reported since the last observation."""
        unseen: Quota[int] = Quota(MOST_UNSEEN_HINTS, MOST_UNSEEN_OF_A_UID)
        for job, uid in self._hints:
            if not self._certain(job, uid):
                unseen.add(uid)
        for report in reports:
            key = job, uid = report.job, report.uid
            if not report.traffic:
                continue
            if key not in self._hints and not self._certain(job, uid) and unseen.try_add(uid):
                jobs = f"{plural(unseen.of[uid], 'job')} that the queue does not have"
                sentence = f"uid {uid} has hints on {jobs}"
                self.refused(RefusalReason.TOO_MANY, sentence)
                continue
            self._hints[key] = Hint(job=job, uid=uid, traffic=report.traffic, at=self._clock())

    def _certain(self, job: str, uid: int) -> bool:
        """Whether `uid` may give hints on the job, by the queue as last read."""
        return uid in self._trusted or (job in self._owner and self._owner[job] == uid)

    def apply(self, records: Iterable[JobRecord]) -> tuple[JobRecord, ...]:
        """`records` with the hints that count, where the queue has no comment. Comments are written
        by users, too, so neither makes a job weigh more than its ports can send: other jobs' routes
        would suffer."""
        return tuple(
            _bounded(
                record
                if record.traffic or not self._hints
                else record._replace(traffic=self._of(record))
            )
            for record in records
        )

    def drop_ended(self, records: Iterable[JobRecord]) -> None:
        """Drop hints that the queue disproves, and those whose jobs have ended; then save."""
        now = self._clock()
        owner = self._owner = {
            number: record.uid for record in records for number in record.numbers
        }
        for key, hint in list(self._hints.items()):
            if hint.job not in owner:
                if now - hint.at > SECONDS_UNSEEN:
                    del self._hints[key]
            elif hint.uid not in self._trusted and owner[hint.job] != hint.uid:
                del self._hints[key]
                self.refused(
                    RefusalReason.NOT_OWNER, f"job {hint.job} is not one of uid {hint.uid}"
                )
            elif now - hint.at > SECONDS_UNSEEN / 2:  # seldom, since it rewrites the file
                self._hints[key] = hint.model_copy(update={"at": now})
        if self._hints != self._saved and self._store.save(list(self._hints.values())):
            self._saved = dict(self._hints)

    def _of(self, record: JobRecord) -> str | None:
        candidates = [
            hint
            for number in record.numbers
            for uid in (record.uid, *self._trusted)
            if uid is not None and (hint := self._hints.get((number, uid)))
        ]
        return max(candidates, key=lambda hint: hint.at).traffic if candidates else None


def _bounded(record: JobRecord) -> JobRecord:
    return record._replace(traffic="weight=1") if record.weight > 1 else record
