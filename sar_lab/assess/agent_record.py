"""What the days that an agent has watched would have brought, or have brought once it installs.

Both are in the agent's own records: while it observes, the tables in force stand against its plans;
once it installs, those of the site's own engine (`agent.baseline`) stand against the tables in
force. Times are means over what each job met from minute to minute, weighted by hosts and time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from sar_agent.agent.history import MOST_ROWS, History, Row
from sar_agent.agent.job_days import JobDay, JobDays
from sar_agent.errors import InputError
from sar_agent.util.plural import plural
from sar_agent.util.sqlite_file import HISTORY
from sar_lab.assess.judgement import LEAST, Change, span_words

_K = TypeVar("_K")
MAGIC = b"SQLite format 3\0"
SIZES = ((2, 8), (9, 32), (33, 128), (129, 512), (513, None))
"""Hosts of small to large jobs, for the table by size."""
USERS_SHOWN, JOBS_SHOWN = 12, 10
FIRST = "first"
"""The reason of a plan that has none before it."""


@dataclass(frozen=True)
class JobGroup:
    """Jobs of one day, size or user."""

    name: str
    jobs: int
    host_hours: float
    at_once: Change
    """All messages at once, in multiples of the time alone."""
    one_at_a_time: Change
    changes: int = 0
    """Of a day: how often tables changed, or would have."""
    entries: int = 0
    """How many entries of tables that were."""

    def json(self) -> dict[str, Any]:
        whole = asdict(self)
        return whole | {"at_once": self.at_once.json(), "one_at_a_time": self.one_at_a_time.json()}


@dataclass(frozen=True)
class AgentRecord:
    """The answer to what these days would have brought."""

    source: str
    live: bool
    """Whether it is of days on which the agent's routes were in force."""
    before: str
    """Whose tables `before` is about."""
    total: JobGroup
    days: tuple[JobGroup, ...]
    sizes: tuple[JobGroup, ...]
    users: tuple[JobGroup, ...]
    slowest: tuple[JobGroup, ...]
    """Jobs that waited most before, in host hours."""
    better: tuple[int, int]
    """Jobs that gain at least a hundredth, all messages at once and one at a time."""
    worse: tuple[int, int]
    """Jobs that lose as much."""
    first_entries: int | None
    """Entries that the first plan changes against the tables in force; None where not known."""
    all_jobs: int
    inside: int
    """Jobs of several hosts that stayed on one leaf switch: no routes can differ."""
    unknown: int
    """Jobs of which one of both times is not known."""
    other_days: int
    """Days before the agent went live, or after: they are not part of the answer."""

    @property
    def sentence(self) -> str:
        """The answer."""
        both = self.total.at_once, self.total.one_at_a_time
        least, most = sorted(change.saved for change in both)
        have = "have" if self.live else "would have"
        than = f" than under {self.before}" if self.live else ""
        if least <= -LEAST:
            who = ("all messages at once", "one message at a time")
            slow = int(both[0].longer < both[1].longer)
            saved = both[1 - slow].saved
            other = f"{saved:.0%} less" if saved >= LEAST else "no less"
            return (
                f"Programs that send {who[slow]} {have} taken {both[slow].longer:.0%} longer to "
                f"send{than}; those that send {who[1 - slow]}, {other} time."
            )
        if most < LEAST:
            return f"There {'was' if self.live else 'would have been'} nothing to gain."
        return f"Your jobs {have} spent {span_words(least, most)} less time sending{than}."

    def json(self) -> dict[str, Any]:
        groups = ("days", "sizes", "users", "slowest")
        lists = {name: [group.json() for group in getattr(self, name)] for name in groups}
        return {**asdict(self), "sentence": self.sentence, "total": self.total.json(), **lists}


def record_path(path: Path) -> Path | None:
    """The agent's history if `path` is one, or its folder; None where it is something else."""
    path = path / HISTORY if path.is_dir() else path
    try:
        with path.open("rb") as file:
            return path if file.read(len(MAGIC)) == MAGIC else None
    except OSError:
        return None


def summarise_record(path: Path) -> AgentRecord:
    """Raises `InputError` where the record has no job with both times."""
    rows = JobDays(path.parent, path.name).all()
    decisions = History(path.parent, path.name).after(0, MOST_ROWS)
    live = any(row.ours for row in rows if row.day == rows[-1].day)
    now = [row for row in rows if row.ours is live]
    wide = [row for row in now if row.leaf_count > 1]
    known = [row for row in wide if _times(row)]
    if not known:
        raise InputError(
            f"the agent has recorded {plural(len({_run(row) for row in rows}), 'job')} of several "
            "hosts, but of none the times under both sets of tables",
            file=path,
            remedy="let it run for a day, in shadow mode with the tables in force "
            "(docs/shadow-mode.md), or live with agent.baseline",
        )
    first, last = known[0].day, known[-1].day
    changed = [row for row in decisions if row.entries_changed and _day(row.at) >= first]
    later = [row for row in changed if row.reason != FIRST and _day(row.at) <= last]
    firsts = [row.entries_changed for row in changed if row.reason == FIRST]
    users = _groups(known, lambda row: row.user or "(unknown)")
    jobs = _groups(known, lambda row: f"{row.job} {row.user}".strip())
    engines = sorted({row.baseline for row in known if row.baseline})
    return AgentRecord(
        source=str(path),
        live=live,
        before=" and ".join(engines) if live else "the tables in force",
        total=_group("", known, later),
        days=tuple(
            _group(
                date.fromordinal(day).isoformat(), of_day, [r for r in later if _day(r.at) == day]
            )
            for day, of_day in _by(known, lambda row: row.day)
        ),
        sizes=tuple(_groups(known, _size, key=lambda group: int(group.name.split()[0]))),
        users=tuple(users[:USERS_SHOWN]),
        slowest=tuple(sorted(jobs, key=_waited, reverse=True)[:JOBS_SHOWN]),
        better=_count(jobs, lambda change: change.saved >= LEAST),
        worse=_count(jobs, lambda change: change.longer >= LEAST),
        first_entries=firsts[0] if firsts else None,
        all_jobs=len({_run(row) for row in now}),
        inside=len({_run(row) for row in now if row.leaf_count < 2}),
        unknown=len({_run(row) for row in wide} - {_run(row) for row in known}),
        other_days=len({row.day for row in rows} - {row.day for row in now}),
    )


def _times(row: JobDay) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """(before, after), each all messages at once and one at a time."""
    before = row.mean("baseline" if row.ours else "in_force")
    after = row.mean("in_force" if row.ours else "planned")
    return (before, after) if before and after else None


def _run(row: JobDay) -> tuple[str, int]:
    return row.job, row.start


def _day(at: float) -> int:
    return date.fromtimestamp(at).toordinal()


def _size(row: JobDay) -> str:
    low, high = next(each for each in SIZES if each[1] is None or row.hosts <= each[1])
    return f"{low} to {plural(high, 'host')}" if high else f"{plural(low, 'host')} and more"


def _by(rows: Iterable[JobDay], key: Callable[[JobDay], _K]) -> list[tuple[_K, list[JobDay]]]:
    found: dict[_K, list[JobDay]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return list(found.items())


def _count(jobs: Sequence[JobGroup], test: Callable[[Change], bool]) -> tuple[int, int]:
    return sum(test(job.at_once) for job in jobs), sum(test(job.one_at_a_time) for job in jobs)


def _waited(group: JobGroup) -> float:
    return group.host_hours * (max(group.at_once.before, group.one_at_a_time.before) - 1)


def _groups(
    rows: Iterable[JobDay],
    of: Callable[[JobDay], str],
    key: Callable[[JobGroup], float] = lambda group: -group.host_hours,
) -> list[JobGroup]:
    return sorted((_group(name, part) for name, part in _by(rows, of)), key=key)


def _group(name: str, rows: Sequence[JobDay], changes: Sequence[Row] = ()) -> JobGroup:
    sums, hours = [[0.0, 0.0], [0.0, 0.0]], 0.0
    for row in rows:
        weight = row.hosts * max(row.seconds, 1.0) / 3600
        hours += weight
        for i, side in enumerate(_times(row) or ()):
            for k, value in enumerate(side):
                sums[k][i] += weight * value
    at_once, phases = (Change(old / hours, new / hours) for old, new in sums)
    entries = sum(row.entries_changed or 0 for row in changes)
    jobs = len({_run(row) for row in rows})
    return JobGroup(name, jobs, hours, at_once, phases, len(changes), entries)
