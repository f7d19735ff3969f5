"""`JobHistory`: jobs with start, end and nodes, as flat arrays sorted by start.

A year of a big site is half a million jobs; as Python objects that is a gigabyte, as arrays some
tens of megabytes. Names are kept once. What a reader could not use is part of the history
(`left_out`), so that a report can list it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, Bool
from sar_agent.util.plural import plural
from sar_lab.history.times import shown

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
EXAMPLES = 5
FAR = (
    "records far in time from all others (runaway jobs, see `sacctmgr show runawayjobs`, or a "
    "clock that was wrong)"
)
REACH = 3.0
"""A record is far where it is as many times the middle half of all, or days, away from it."""
HOUR = 3600.0
WITHOUT_NODES = "jobs without nodes"


@dataclass(frozen=True)
class LeftOut:
    """Records that a reader or a mapping did not use, or changed."""

    reason: str
    """A plural clause after the number: `jobs that end before they start (a clock jumped)`."""
    count: int
    examples: tuple[str, ...]
    """At most five: job ids, hosts, lines."""

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        number = f"{self.count:,} " if self.count > 1 else ""  # one is its own example
        return f"{number}{self.reason}: {', '.join(self.examples)}{more}"


class Change(NamedTuple):
    """The jobs that end and start at one moment; between two changes nothing happens."""

    time: float
    ended: I64
    """int64[·]: jobs that end now and no longer run."""
    started: I64
    """int64[·]: jobs that start now."""


@dataclass(frozen=True, eq=False)
class JobHistory:
    """J jobs on H hosts; job j runs at t where `start[j] <= t < end[j]`."""

    name: str
    """The source of the history, for captions."""
    hosts: tuple[str, ...]
    """H host names, each once."""
    ids: tuple[str, ...]
    """J ids as the source has them; a requeued job may be there more than once."""
    start: F64
    """float64[J], seconds (Unix time, in the clock of the source), ascending."""
    end: F64
    """float64[J], above `start`; inf where the job still ran when the record was made."""
    offset: I64
    """int64[J + 1] into `host`."""
    host: I32
    """int32[·], indices into `hosts`, ascending within a job, each once."""
    left_out: tuple[LeftOut, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences that a report of results must repeat: `end times are bounds`, …"""
    unix: bool = False
    """Whether times are seconds since 1970; else they are what the source's clock showed, which is
    local, read as UTC."""
    window: tuple[float, float] | None = None
    """The part that the reader asked for (`window.within`); None: all."""

    @property
    def jobs(self) -> int:
        return len(self.ids)

    @cached_property
    def size(self) -> I64:
        """int64[J]: hosts of each job."""
        return np.diff(self.offset)

    @cached_property
    def span(self) -> tuple[float, float]:
        """First start, and the last moment at which something happens; (0, 0) without jobs."""
        if not self.jobs:
            return 0.0, 0.0
        known = self.end[np.isfinite(self.end)]
        return float(self.start[0]), max(float(self.start[-1]), float(known.max(initial=-inf)))

    @cached_property
    def bulk(self) -> tuple[float, float]:
        """The part of `span` of which the record tells: jobs that had begun long before, or ended
        long after, are in it without those that ran beside them. From the first end or the first
        twentieth of starts, to the last start or the last twentieth of ends."""
        if self.window:
            return self.window
        begin, last = self.span
        ends = self.end[np.isfinite(self.end)]
        if not len(ends):
            return begin, last
        twentieth = float(np.quantile(self.start, 0.05, method="lower"))
        begin = min(twentieth, max(begin, float(ends.min())))
        twentieth = float(np.quantile(ends, 0.95, method="higher"))
        return begin, max(twentieth, float(self.start[-1]))

    def clock(self, time: float) -> datetime:
        """What the source's clock showed at a time; for seconds since 1970, the reader's own."""
        return datetime.fromtimestamp(time, None if self.unix else UTC)

    def day_of(self, time: float) -> str:
        """`2016-12-22 07:15`, by that clock."""
        return f"{self.clock(time):%Y-%m-%d %H:%M}"

    def hosts_of(self, job: int) -> I32:
        """int32[N]: the hosts of one job."""
        return self.host[self.offset[job] : self.offset[job + 1]]

    def running(self, time: float) -> I64:
        """int64[·]: jobs that run at that time, ascending."""
        begun = int(np.searchsorted(self.start, time, "right"))
        return np.flatnonzero(self.end[:begun] > time)

    def changes(self) -> Iterator[Change]:
        """Every moment at which jobs start or end, in order; at one moment ends come first, so
        that another job can take the nodes."""
        leaving = np.argsort(self.end, kind="stable")
        leaving = leaving[np.isfinite(self.end[leaving])]
        ends = self.end[leaving]
        for time in np.union1d(self.start, ends).tolist():
            out = slice(*np.searchsorted(ends, (time, np.nextafter(time, inf))))
            into = slice(*np.searchsorted(self.start, (time, np.nextafter(time, inf))))
            yield Change(time, np.sort(leaving[out]), np.arange(into.start, into.stop))

    def only(self, keep: Bool) -> JobHistory:
        """The jobs where `keep` (bool[J]) is true; hosts, remarks and `left_out` stay."""
        size = np.where(keep, self.size, 0)
        return JobHistory(
            self.name,
            self.hosts,
            tuple(self.ids[j] for j in np.flatnonzero(keep)),
            self.start[keep],
            self.end[keep],
            np.concatenate([[0], np.cumsum(size[keep])]).astype(np.int64),
            self.host[np.repeat(keep, self.size)],
            self.left_out,
            self.remarks,
            self.unix,
        )


def far_records(times: F64) -> Bool:
    """bool[J]: the jobs (times: float64[J, 2], start and end) that begin or end far from the hours
    in which the others do. Each hour counts once, so that a thousand jobs of one hour do not make
    all others far. None where there are fewer than ten jobs, or where these would be more than a
    tenth: then it is the record that is so."""
    hours = np.unique(times[np.isfinite(times)] // HOUR) * HOUR
    low, high = np.quantile(hours, (0.25, 0.75))
    reach = REACH * max(24 * HOUR, float(high - low))
    far = (times[:, 0] < low - reach) | (times[:, 0] > high + reach)
    far |= np.isfinite(times[:, 1]) & (times[:, 1] > high + reach)
    few = len(times) >= 10 and far.sum() <= max(1, len(times) // 10)
    return far if few else np.zeros(len(times), np.bool_)


@dataclass
class HistoryBuilder:
    """Collects jobs in any order, and records that are not used; `build` sorts and freezes them."""

    name: str
    _number: dict[str, int] = field(default_factory=dict)
    _rows: list[tuple[float, float, str, I32, bool]] = field(default_factory=list)
    _seen: set[tuple[str, float, float, bytes, bool]] = field(default_factory=set)
    _lists: dict[tuple[str, ...], I32] = field(default_factory=dict)
    _left: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    _remarks: dict[str, None] = field(default_factory=dict)

    def leave_out(self, reason: str, example: str) -> None:
        """Counts one record that is not used; `reason` as in `LeftOut`."""
        count, examples = self._left.get(reason, (0, []))
        if len(examples) < EXAMPLES:
            examples.append(example)
        self._left[reason] = count + 1, examples

    def remark(self, sentence: str) -> None:
        """Adds a remark on the whole history; repeated remarks are kept once."""
        self._remarks[sentence] = None

    def add(
        self, id: str, start: float, end: float, hosts: Iterable[str], *, unix: bool = False
    ) -> None:
        """Adds a job; an impossible one is left out and counted. `unix`: its times are seconds
        since 1970, not what a clock showed."""
        names = tuple(hosts)
        if not names:
            return self.leave_out(WITHOUT_NODES, id)
        if end < start:
            return self.leave_out("jobs that end before they start (a clock jumped)", id)
        if end == start:
            return self.leave_out("jobs that ended in the second in which they started", id)
        if names not in self._lists:
            numbers = [self._number.setdefault(host, len(self._number)) for host in names]
            self._lists[names] = np.unique(np.array(numbers, np.int32))
        where = self._lists[names]
        row = id, start, end, where.tobytes(), unix
        if row in self._seen:
            return self.leave_out("duplicate records", id)
        self._seen.add(row)
        self._rows.append((start, end, id, where, unix))
        return None

    def build(self) -> JobHistory:
        """The history. Raises `InputError` where no job is left."""
        if not self._rows:
            left = "; ".join(map(str, self._build_left()))
            if self._left.keys() == {WITHOUT_NODES}:
                raise InputError(
                    "no job of the history has nodes",
                    file=self.name,
                    remedy="save the column NodeList of jobs that have run: sacct -a -X -P "
                    "-S 2026-01-01 -o JobID,Start,End,State,NodeList",
                )
            raise InputError(
                "the history has no usable job" + (f" ({left})" if left else ""),
                file=self.name,
                remedy="docs/assess.md describes what to dump",
            )
        unix = all(row[4] for row in self._rows)
        rows = sorted(self._rows if unix else self._by_clock(), key=lambda row: row[:3])
        far = far_records(np.array([row[:2] for row in rows], np.float64))
        for j in np.flatnonzero(far).tolist():
            self.leave_out(FAR, rows[j][2])
        rows = [row for row, alone in zip(rows, far.tolist(), strict=True) if not alone]
        return JobHistory(
            self.name,
            tuple(self._number),
            tuple(row[2] for row in rows),
            np.array([row[0] for row in rows], np.float64),
            np.array([row[1] for row in rows], np.float64),
            np.cumsum([0, *(len(row[3]) for row in rows)], dtype=np.int64),
            np.concatenate([row[3] for row in rows]).astype(np.int32),
            self._build_left(),
            tuple(self._remarks),
            unix,
        )

    def _by_clock(self) -> list[tuple[float, float, str, I32, bool]]:
        """The rows, all by what a clock showed: moments by the reader's."""
        moments = sum(row[4] for row in self._rows)
        if moments:
            self.remark(
                f"{plural(moments, 'record has', 'records have')} seconds since 1970, the others "
                "the time that a clock showed; the former are read in your time zone."
            )
        return [
            (shown(start), end if isinf(end) else shown(end), id, hosts, False) if unix else row
            for row in self._rows
            for start, end, id, hosts, unix in (row,)
        ]

    def _build_left(self) -> tuple[LeftOut, ...]:
        return tuple(LeftOut(reason, n, tuple(some)) for reason, (n, some) in self._left.items())
