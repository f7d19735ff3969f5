"""What is remembered of jobs: one row for each job and day, for the last `DAYS` days with jobs.

`explain` of a job that has ended reads it, and `assess --history` what a week would have brought.
Jobs of one host send nothing into the fabric and have no rows. A day is one of the host's calendar.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from sar_agent.util.sqlite_file import HISTORY, SqliteFile, add_columns, columns_of

DAYS = 30
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
    counted: float | None = None
    """The largest share of its speed that counters saw on the job's worst link of the moment."""

    def add_time(self, tables: Tables, seconds: float, at_once: float, phases: float) -> None:
        """The job was `seconds` under `tables`, with these times."""
        sums = self.sums.setdefault(tables, [0.0, 0.0, 0.0])
        for i, value in enumerate((1.0, at_once, phases)):
            sums[i] += seconds * value

    def mean(self, tables: Tables) -> tuple[float, float] | None:
        """Mean times, all messages at once and one at a time; None where they are not known."""
        seconds, at_once, phases = self.sums.get(tables, [0.0] * 3)
        return (at_once / seconds, phases / seconds) if seconds else None


_COLUMNS = [column.name for column in fields(JobDay)]
_KEY = ("day", "job", "start", "ours")
_JSON = ("leaves", "sums", "shared")


class JobDays(SqliteFile):
    """The rows, in `history.sqlite` of a folder. Raises `SarError` where the disk does not take or
    give them."""

    def __init__(self, folder: Path, name: str = HISTORY) -> None:
        super().__init__(folder / name)

    def put(self, rows: Iterable[JobDay]) -> None:
        """Writes rows, in place of those with the same key, and deletes what is too old."""
        values = [[_written(name, value) for name, value in asdict(row).items()] for row in rows]
        columns, marks = ", ".join(_COLUMNS), ", ".join("?" * len(_COLUMNS))
        changed = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)

        def replace(base: sqlite3.Connection) -> None:
            base.execute(
                f"CREATE TABLE IF NOT EXISTS job_days ({columns}, PRIMARY KEY ({', '.join(_KEY)}))"
            )
            base.execute("CREATE INDEX IF NOT EXISTS job_days_of_job ON job_days (job)")
            add_columns(base, "job_days", _COLUMNS)
            base.executemany(
                f"INSERT INTO job_days ({columns}) VALUES ({marks}) "
                f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {changed}",
                values,
            )
            _forget(base)

        self.write(replace)

    def get(self, day: int, job: str, start: int, ours: bool) -> JobDay | None:
        """One row; None where there is none."""
        rest = " AND ".join(f"{name} = ?" for name in _KEY)
        return next(iter(self._select(f"WHERE {rest}", day, job, start, ours)), None)

    def of_job(self, job: str) -> list[JobDay]:
        """All rows of a job, the oldest first."""
        return self._select("WHERE job = ? ORDER BY first", job)

    def newest(self, day: int) -> float:
        """When a row of that day was written last, Unix seconds; 0 where there is none."""
        last = self._select("WHERE day = ? ORDER BY last DESC LIMIT 1", day)
        return last[0].last if last else 0.0

    def all(self) -> list[JobDay]:
        """All rows, the oldest day first."""
        return self._select("ORDER BY day, job")

    def _select(self, rest: str, *values: object) -> list[JobDay]:
        if not self.path.exists():
            return []
        with self.open(write=False) as base:
            known = columns_of(base, "job_days")
            columns = [name for name in _COLUMNS if name in known]
            if not columns:
                return []
            found = base.execute(f"SELECT {', '.join(columns)} FROM job_days {rest}", values)
            rows = [dict(zip(columns, each, strict=True)) for each in found]
        return [JobDay(**{name: _read(name, value) for name, value in row.items()}) for row in rows]


def _written(name: str, value: Any) -> Any:
    if name not in _JSON:
        return round(value, 3) if isinstance(value, float) else value
    if name == "sums":
        value = {tables: [round(each, 1) for each in sums] for tables, sums in value.items()}
    return json.dumps(value, separators=(",", ":"))


def _read(name: str, value: Any) -> Any:
    """A damaged text is as an empty one."""
    if name == "ours":
        return bool(value)
    if name not in _JSON:
        return value
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return [] if name == "shared" else {}


def _forget(base: sqlite3.Connection) -> None:
    """Days are counted and not compared with the clock: one that has jumped deletes nothing."""

    def day_before(day: int | None) -> int | None:
        below = "" if day is None else f" WHERE day < {day}"
        [(found,)] = base.execute(f"SELECT max(day) FROM job_days{below}")
        return None if found is None else int(found)

    oldest = None
    for _ in range(DAYS):
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
