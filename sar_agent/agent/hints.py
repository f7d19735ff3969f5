"""What users said of their jobs' traffic with `--sar-traffic`, kept until the job ends.

A hint comes with an event, the job with the queue, in any order. So hints wait here with whoever
gave them; one counts if root or SlurmUser gave it, or the user whose job the queue shows. What the
queue itself says (`sar:` in a comment) comes first: the site can overrule a user there. A hint
whose job the queue does not show is forgotten after a minute; the rest survives a restart.

Hints on jobs that the queue shows as the speaker's are as many as it has jobs. Of others each uid
may have `MOST_UNSEEN`, and all users together `MOST`; root and SlurmUser always have room.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sar_agent.errors import InputError
from sar_agent.events.inbox import JobReport
from sar_agent.jobs.record import JobRecord
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.steady_clock import steady_time
from sar_agent.util.text_files import write_bytes

log = logging.getLogger(__name__)
PATIENCE = 60.0
"""Seconds in which a job must appear in the queue, and after which one that left is forgotten."""
MOST = 16384
MOST_UNSEEN = 256


class Hint(BaseModel):
    """`at`: Unix seconds at which it was given, or its job was last seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: str
    uid: int
    traffic: str
    at: float


_FILE = TypeAdapter(list[Hint])


class Hints:
    """`hints.json` in `folder`. `trusted` are uids that may speak of all jobs; `refused` is
    told of hints that turned out to be on somebody else's job, `too_many` of those past a bound."""

    def __init__(
        self,
        folder: Path,
        trusted: frozenset[int],
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self.path, self._trusted, self._clock = folder / "hints.json", trusted, clock
        self.refused: Callable[[str], None] = lambda sentence: None
        self.too_many: Callable[[str], None] = lambda sentence: None
        self._say = ProblemLog(log)
        self._owner: dict[str, int | None] = {}
        """Of each job, as the queue showed it last."""
        self._hints: dict[tuple[str, int], Hint] = {}
        self._saved: dict[tuple[str, int], Hint] = {}
        try:
            loaded = _FILE.validate_json(self.path.read_bytes())
            now = self._clock()  # a clock that was ahead must not keep them for ever
            self._hints = {
                (one.job, one.uid): one.model_copy(update={"at": min(one.at, now)})
                for one in loaded
            }
            self._saved = dict(self._hints)
        except FileNotFoundError:
            pass
        except (OSError, ValidationError) as error:
            log.warning(
                "%s: cannot be used (%s); hints start anew", self.path, type(error).__name__
            )

    def hear(self, heard: Iterable[JobReport]) -> None:
        """What came since the last look."""
        unseen = Counter(uid for job, uid in self._hints if not self._certain(job, uid))
        for one in heard:
            key = one.job, one.uid
            if not one.traffic:
                continue
            if key not in self._hints and not self._certain(*key):
                if unseen[one.uid] >= MOST_UNSEEN or unseen.total() >= MOST:
                    many = f"uid {one.uid} has hints on {unseen[one.uid]} jobs that nobody knows"
                    self.too_many(many)
                    continue
                unseen[one.uid] += 1
            self._hints[key] = Hint(job=one.job, uid=one.uid, traffic=one.traffic, at=self._clock())

    def _certain(self, job: str, uid: int) -> bool:
        """Whether `uid` may speak of the job, as far as the queue was seen."""
        return uid in self._trusted or (job in self._owner and self._owner[job] == uid)

    def apply(self, records: Iterable[JobRecord]) -> tuple[JobRecord, ...]:
        """`records` with the hints that count, where the queue has none of its own; comments are
        users', too, so neither makes a job weigh more than its ports can send: others' routes would
        pay for it."""
        return tuple(
            _bounded(
                record
                if record.traffic or not self._hints
                else replace(record, traffic=self._of(record))
            )
            for record in records
        )

    def settle(self, records: Iterable[JobRecord]) -> None:
        """The queue as it is now: drop false hints, and those whose jobs are gone; then save."""
        now = self._clock()
        owner = self._owner = {
            number: record.uid for record in records for number in record.numbers
        }
        for key, hint in list(self._hints.items()):
            if hint.job not in owner:
                if now - hint.at > PATIENCE:
                    del self._hints[key]
            elif hint.uid not in self._trusted and owner[hint.job] != hint.uid:
                del self._hints[key]
                self.refused(f"job {hint.job} is not one of uid {hint.uid}")
            elif now - hint.at > PATIENCE / 2:  # seldom, as it makes the file another
                self._hints[key] = hint.model_copy(update={"at": now})
        if self._hints != self._saved:
            self._save()

    def _of(self, record: JobRecord) -> str | None:
        mine = [
            hint
            for number in record.numbers
            for uid in (record.uid, *self._trusted)
            if uid is not None and (hint := self._hints.get((number, uid)))
        ]
        return max(mine, key=lambda hint: hint.at).traffic if mine else None

    def _save(self) -> None:
        try:
            write_bytes(self.path, _FILE.dump_json(list(self._hints.values())) + b"\n", PRIVATE)
            self._saved = dict(self._hints)
            self._say.problem("hints", "", "hints can be saved again")
        except InputError as error:
            self._say.problem("hints", f"{error}; hints are kept in memory only")


def _bounded(record: JobRecord) -> JobRecord:
    return replace(record, traffic="weight=1") if record.weight > 1 else record
