"""What is remembered of jobs: one row for each job and day, for the last 30 days with jobs.

`explain` of a job that has ended reads it, and `assess --history` what a week would have brought.
Jobs of one host send nothing into the fabric and have no rows. A day is one of the host's calendar.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sar_agent.util.sqlite_file import HISTORY, SqliteTable

KEPT_DAYS = 30
MOST_BYTES = 1 << 29
"""Above this size of the file, the oldest days go first, however few are left."""
MOST_LEAVES = 24
"""Leaf switches that a row names; the others are counted."""
MOST_SHARED = 12
"""Jobs that a row names as users of the worst link; the others are counted."""
Tables = Literal["in_force", "planned", "baseline"]


@dataclass
class JobDay:
    """A job on one day, while the agent's routes were in force (`ours`), or while they were not."""

    day: int
    """`date.toordinal` of the day."""
    job: str
    start: int
    """Unix seconds; 0 where Slurm did not tell."""
    ours: bool
    user: str = ""
    hosts: int = 0
    leaves: dict[str, int] = field(default_factory=dict)
    """Hosts of the job by leaf switch, of at most `MOST_LEAVES`."""
    leaf_count: int = 0
    first: float = 0.0
    """When it was seen first and last, Unix seconds."""
    last: float = 0.0
    seconds: float = 0.0
    """How long it was watched."""
    sums: dict[Tables, list[float]] = field(default_factory=dict)
    """By tables: seconds, and integrals over them of how many times as long as alone the job would
    send, all messages at once and one at a time."""
    baseline: str = ""
    """The engine of the baseline."""
    worst_load: float | None = None
    """The largest predicted load of a link that the job used, under the tables in force."""
    worst_at: float = 0.0
    """When that was, Unix seconds."""
    worst_link: str = ""
    shared: list[str] = field(default_factory=list)
    """The other jobs on that link then, those with most routes first, at most `MOST_SHARED`."""
    shared_count: int = 0

    def add_time(self, tables: Tables, seconds: float, at_once: float, phases: float) -> None:
        """The job was `seconds` under `tables`, with these times."""
        sums = self.sums.setdefault(tables, [0.0, 0.0, 0.0])
        for i, value in enumerate((1.0, at_once, phases)):
            sums[i] = round(sums[i] + seconds * value, 3)

    def mean(self, tables: Tables) -> tuple[float, float] | None:
        """Mean times, all messages at once and one at a time; None where they are not known."""
        seconds, at_once, phases = self.sums.get(tables, [0.0] * 3)
        return (at_once / seconds, phases / seconds) if seconds else None


@dataclass(frozen=True)
class Saved:
    """What the days on which the agent's routes were in force have saved, by hosts and time."""

    engine: str
    """Of the baseline; several are separated by commas."""
    days: int
    at_once: float
    """The share of the baseline's time that jobs did not need, all messages at once; below 0 where
    they needed more."""
    one_at_a_time: float


_MEANS = ", ".join(
    f"sum(hosts * max(seconds, 1) * json_extract(sums, '$.{tables}[{i}]') "
    f"/ json_extract(sums, '$.{tables}[0]'))"
    for i in (1, 2)
    for tables in ("baseline", "in_force")
)
_SAVED = (
    f"SELECT group_concat(DISTINCT baseline), count(DISTINCT day), {_MEANS} FROM job_days "
    "WHERE ours AND leaf_count > 1 AND json_valid(sums) "
    "AND json_extract(sums, '$.baseline[0]') > 0 AND json_extract(sums, '$.in_force[0]') > 0"
)
_KEY = ("day", "job", "start", "ours")


class JobDays(SqliteTable[JobDay]):
    """The rows, in `history.sqlite` of a folder. Raises `SarError` where the disk does not take or
    give them."""

    def __init__(self, folder: Path, name: str = HISTORY) -> None:
        form = f"(%s, PRIMARY KEY ({', '.join(_KEY)}))"
        super().__init__(folder / name, "job_days", JobDay, form)

    def keep(self, rows: Iterable[JobDay]) -> None:
        """Writes rows, in place of those with the same key, and deletes what is too old."""

        def replace(base: sqlite3.Connection) -> None:
            self.upsert(base, rows)
            base.execute("CREATE INDEX IF NOT EXISTS job_days_of_job ON job_days (job)")
            _forget(base)

        self.write(replace)

    def get(self, day: int, job: str, start: int, ours: bool) -> JobDay | None:
        """One row; None where there is none."""
        rest = " AND ".join(f"{name} = ?" for name in _KEY)
        return next(iter(self.select(f"WHERE {rest}", day, job, start, ours)), None)

    def of_job(self, job: str) -> list[JobDay]:
        """All rows of a job, the oldest first."""
        return self.select("WHERE job = ? ORDER BY first", job)

    def newest(self, day: int) -> float:
        """When a row of that day was written last, Unix seconds; 0 where there is none."""
        last = self.select("WHERE day = ? ORDER BY last DESC LIMIT 1", day)
        return last[0].last if last else 0.0

    def all(self) -> list[JobDay]:
        """All rows, the oldest day first."""
        return self.select("ORDER BY day, job")

    def saved(self) -> Saved | None:
        """None where no job was seen under both the baseline and the agent's routes."""
        for engine, days, before, now, before_one, now_one in self.query(_SAVED):
            if days:
                return Saved(engine, days, 1 - now / before, 1 - now_one / before_one)
        return None


def _forget(base: sqlite3.Connection) -> None:
    """Days are counted and not compared with the clock: one that has jumped deletes nothing."""

    def day_before(day: int | None) -> int | None:
        below = "" if day is None else f" WHERE day < {day}"
        [(found,)] = base.execute(f"SELECT max(day) FROM job_days{below}")
        return None if found is None else int(found)

    oldest = None
    for _ in range(KEPT_DAYS):
        day = day_before(oldest)
        if day is None:
            break
        oldest = day
    base.execute("DELETE FROM job_days WHERE day < ?", (oldest or 0,))
    [(size,)] = base.execute("PRAGMA page_size")
    [(pages,)] = base.execute("PRAGMA page_count")
    [(free,)] = base.execute("PRAGMA freelist_count")
    if (pages - free) * size > MOST_BYTES:
        base.execute("DELETE FROM job_days WHERE day = (SELECT min(day) FROM job_days)")
